// The program that is started in the benchmarks: writes one byte and exits. No libc, so that what is measured is the
// launching.
#if defined(__x86_64__)
asm(".globl _start\n"
    "_start: movl $1, %eax\n movl $1, %edi\n leaq byte(%rip), %rsi\n movl $1, %edx\n syscall\n"
    "movl $60, %eax\n xorl %edi, %edi\n syscall\n"
    "byte: .ascii \".\"\n");
#elif defined(__aarch64__)
asm(".globl _start\n"
    "_start: mov x8, #64\n mov x0, #1\n adr x1, byte\n mov x2, #1\n svc #0\n"
    "mov x8, #93\n mov x0, #0\n svc #0\n"
    "byte: .ascii \".\"\n");
#endif
