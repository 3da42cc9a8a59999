// Writes the filters of every architecture as C++ source, at build time: `generate OUTPUT`. The only program that links
// libseccomp, which knows the names and numbers of the older system calls.
#include <linux/audit.h>
#include <seccomp.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bulkhead/launcher/seccomp/compiler.h"
#include "bulkhead/launcher/seccomp/lists.h"

namespace bulkhead::launcher {
namespace {

// libseccomp is asked for numbers up to this one, which all of its versions since 2.5.4 know, so that its version does
// not change what we build.
constexpr int kLibseccompHighest = 450;

struct NewCall {
  const char* name;
  std::uint32_t number;
};

// Since Linux 5.17 every architecture gives a new call the same number. From arch/x86/entry/syscalls/syscall_64.tbl and
// scripts/syscall.tbl of Linux 7.0.
constexpr NewCall kNewCalls[] = {
    {"cachestat", 451},         {"fchmodat2", 452},         {"map_shadow_stack", 453}, {"futex_wake", 454},
    {"futex_wait", 455},        {"futex_requeue", 456},     {"statmount", 457},        {"listmount", 458},
    {"lsm_get_self_attr", 459}, {"lsm_set_self_attr", 460}, {"lsm_list_modules", 461}, {"mseal", 462},
    {"setxattrat", 463},        {"getxattrat", 464},        {"listxattrat", 465},      {"removexattrat", 466},
    {"open_tree_attr", 467},    {"file_getattr", 468},      {"file_setattr", 469},     {"listns", 470},
    {"rseq_slice_yield", 471},
};

// The kernel's trampolines for probes call these two. A traced program would die if they failed.
constexpr NewCall kNewX86Calls[] = {{"uretprobe", 335}, {"uprobe", 336}};

struct Architecture {
  const char* name;  // of the Arch in filters.h
  SyscallTable table;
};

Architecture MakeArchitecture(const char* name, std::uint32_t scmp_arch, std::uint32_t audit_arch) {
  Architecture made{name, {}};
  made.table.audit_arch = audit_arch;
  made.table.has_x32 = audit_arch == AUDIT_ARCH_X86_64;
  for (int number = 0; number <= kLibseccompHighest; ++number) {
    char* call = seccomp_syscall_resolve_num_arch(scmp_arch, number);
    if (call == nullptr) continue;
    made.table.numbers[call] = static_cast<std::uint32_t>(number);
    std::free(call);
  }
  for (const NewCall& call : kNewCalls) made.table.numbers[call.name] = call.number;
  if (audit_arch == AUDIT_ARCH_X86_64) {
    for (const NewCall& call : kNewX86Calls) made.table.numbers[call.name] = call.number;
  }
  return made;
}

std::string Source(const std::vector<Architecture>& architectures) {
  std::vector<FilterSet> sets = MergedSets();
  for (const FilterName name : kAllFilters) sets.push_back(SetOf(name));
  std::string text = "// Written by generate.cc from lists.cc: {code, jump if true, jump if false, k}.\n";
  std::string views;
  for (const Architecture& architecture : architectures) {
    for (const FilterSet set : sets) {
      std::string variable = absl::StrCat("k_", architecture.name);
      for (const FilterList& list : ListsOf(set)) absl::StrAppend(&variable, "_", list.name);
      absl::StrAppend(&text, "constexpr BpfInstruction ", variable, "[] = {\n");
      std::vector<BpfInstruction> program = CompileFilters(ListsOf(set), architecture.table);
      for (const BpfInstruction& instruction : program) {
        absl::StrAppendFormat(&text, "    {0x%02x, %d, %d, 0x%08x},\n", instruction.code, instruction.jt,
                              instruction.jf, instruction.k);
      }
      absl::StrAppend(&text, "};\n");
      absl::StrAppendFormat(&views, "    {Arch::%s, 0x%x, {%s, %d}},\n", architecture.name, set, variable,
                            program.size());
    }
  }
  absl::StrAppend(&text, "constexpr NumberedCall kCalls[] = {\n");
  for (const Architecture& architecture : architectures) {
    for (const auto& [call, number] : architecture.table.numbers) {
      absl::StrAppendFormat(&text, "    {Arch::%s, \"%s\", %d},\n", architecture.name, call, number);
    }
  }
  absl::StrAppend(&text, "};\n");
  return absl::StrCat(text, "constexpr BuiltIn kBuiltIn[] = {\n", views, "};\n");
}

int Generate(const char* output) {
  std::vector<Architecture> architectures = {
      MakeArchitecture("kX86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64),
      MakeArchitecture("kAarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64),
  };
  std::vector<SyscallTable> tables;
  for (const Architecture& architecture : architectures) tables.push_back(architecture.table);
  for (FilterName name : kAllFilters) {
    FilterList list = ListOf(name);
    std::vector<std::string> unknown = UnknownCalls(list, tables);
    if (unknown.empty()) continue;
    std::fprintf(
        stderr,
        "cannot compile the filter \"%s\": no architecture has \"%s\"; correct lists.cc, or add the number here\n",
        list.name, absl::StrJoin(unknown, "\", \"").c_str());
    return 1;
  }
  std::ofstream file(output);
  file << Source(architectures);
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write \"%s\"\n", output);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace bulkhead::launcher

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s OUTPUT\n", argv[0]);
    return 64;
  }
  return bulkhead::launcher::Generate(argv[1]);
}
