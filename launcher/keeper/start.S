// Entry point and clone(2): the only assembly.
#if defined(__x86_64__)
        .globl  _start
        .type   _start, @function
_start: xorl    %ebp, %ebp
        andq    $-16, %rsp
        call    BulkheadKeeperMain
        hlt

// long BulkheadClone(flags, stack_top, pidfd, entry): clone(flags, stack, parent_tid = pidfd, child_tid, tls)
        .globl  BulkheadClone
        .type   BulkheadClone, @function
BulkheadClone:
        movq    %rcx, %r9
        xorl    %r10d, %r10d
        xorl    %r8d, %r8d
        movl    $56, %eax
        syscall
        testq   %rax, %rax
        jnz     1f
        xorl    %ebp, %ebp
        call    *%r9
        hlt
1:      ret
#elif defined(__aarch64__)
        .globl  _start
        .type   _start, %function
_start: mov     x29, xzr
        mov     x30, xzr
        bl      BulkheadKeeperMain
        brk     #0

// clone(flags, stack, parent_tid = pidfd, tls, child_tid)
        .globl  BulkheadClone
        .type   BulkheadClone, %function
BulkheadClone:
        mov     x9, x3
        mov     x3, xzr
        mov     x4, xzr
        mov     x8, #220
        svc     #0
        cbnz    x0, 1f
        mov     x29, xzr
        blr     x9
        brk     #0
1:      ret
#endif
        .section .note.GNU-stack, "", %progbits
