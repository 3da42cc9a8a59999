#include "bulkhead/launcher/elf_program.h"

#include <elf.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

constexpr int kProgramHeadersMax = 64;

std::string ReadAt(int fd, std::size_t bytes, off_t offset) {
  std::string text(bytes, '\0');
  const ssize_t got = pread(fd, text.data(), bytes, offset);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

template <typename Header, typename ProgramHeader>
absl::Status LookAtHeaders(int fd, Program& program) {
  Header header;
  const std::string head = ReadAt(fd, sizeof header, 0);
  if (head.size() < sizeof header) return RefuseProgram(program.path, "the ELF file is cut off");
  std::memcpy(&header, head.data(), sizeof header);
  for (int i = 0; i < std::min<int>(header.e_phnum, kProgramHeadersMax); ++i) {
    ProgramHeader entry;
    const std::string bytes = ReadAt(fd, sizeof entry, static_cast<off_t>(header.e_phoff) + i * header.e_phentsize);
    if (bytes.size() < sizeof entry) return RefuseProgram(program.path, "the ELF file is cut off");
    std::memcpy(&entry, bytes.data(), sizeof entry);
    if (entry.p_type != PT_INTERP) continue;
    const std::string loader =
        ReadAt(fd, std::min<std::size_t>(entry.p_filesz, PATH_MAX), static_cast<off_t>(entry.p_offset)).c_str();
    program.interpreter = loader;
    struct stat info;
    if (stat(loader.c_str(), &info) != 0) {
      return RefuseProgram(program.path,
                           absl::StrCat("its ELF loader ", policy::Quote(loader),
                                        " does not exist; it is built for another system, or its C library "
                                        "is not installed"));
    }
  }
  return absl::OkStatus();
}

bool MachineFits(int machine) {
#if defined(__x86_64__)
  return machine == EM_X86_64 || machine == EM_386;  // 32-bit programs start, but the system call filter stops them
#elif defined(__aarch64__)
  return machine == EM_AARCH64 || machine == EM_ARM;
#else
  return true;
#endif
}

}  // namespace

absl::Status LookAtElfProgram(int fd, const std::string& head, Program& program) {
  if (!absl::StartsWith(head, ELFMAG)) return absl::OkStatus();  // binfmt_misc may know it
  if (head.size() < sizeof(Elf32_Ehdr)) return RefuseProgram(program.path, "the ELF file is cut off");
  Elf32_Half machine;  // at the same place in both classes
  std::memcpy(&machine, head.data() + offsetof(Elf32_Ehdr, e_machine), sizeof machine);
  if (!MachineFits(machine)) return RefuseProgram(program.path, "it is built for another kind of machine");
  return head[EI_CLASS] == ELFCLASS64 ? LookAtHeaders<Elf64_Ehdr, Elf64_Phdr>(fd, program)
                                      : LookAtHeaders<Elf32_Ehdr, Elf32_Phdr>(fd, program);
}

}  // namespace bulkhead::launcher
