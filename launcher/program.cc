#include "bulkhead/launcher/program.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/unique_fd.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

// The kernel reads this much of a first line (BINPRM_BUF_SIZE).
constexpr std::size_t kFirstLineBytesMax = 256;
constexpr int kProgramHeadersMax = 64;

absl::Status Refused(absl::string_view path, absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat("can't run ", policy::Quote(path), ": ", why));
}

// Any of the three execute bits: which of them counts depends on who the server will be; the kernel has the last word.
bool MayBeExecutable(const struct stat& info) { return (info.st_mode & 0111) != 0; }

std::string ReadAt(int fd, std::size_t bytes, off_t offset) {
  std::string text(bytes, '\0');
  const ssize_t got = pread(fd, text.data(), bytes, offset);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

bool IsWritable(absl::string_view path, MayWrite may_write) {
  const absl::StatusOr<ResolvedPath> resolved = ResolvePath(path);
  return resolved.ok() && may_write(resolved->real);
}

absl::Status LookAtScript(const std::string& head, const std::string& path_list, Program& program) {
  absl::string_view line(head);
  line = line.substr(2, line.find('\n') - 2);
  const std::vector<std::string> words =
      absl::StrSplit(absl::StripAsciiWhitespace(line), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.empty()) return Refused(program.path, "its first line names no interpreter");
  program.interpreter = words[0];
  program.is_script = true;
  struct stat info;
  if (stat(words[0].c_str(), &info) != 0) {
    return Refused(program.path, absl::StrCat("it is a script and its interpreter ", policy::Quote(words[0]),
                                              " (first line) does not exist; install it"));
  }
  if (words.size() < 2 || !absl::EndsWith(words[0], "/env")) return absl::OkStatus();
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i][0] == '-' || absl::StrContains(words[i], "=")) continue;
    const absl::StatusOr<std::string> found = FindOnPath(words[i], path_list, [](const std::string&) { return false; });
    if (found.ok()) return absl::OkStatus();
    return Refused(program.path, absl::StrCat("it is a script for ", policy::Quote(words[i]),
                                              ", which is not on the server's PATH: ", path_list));
  }
  return absl::OkStatus();
}

template <typename Header, typename ProgramHeader>
absl::Status LookAtElf(int fd, Program& program) {
  Header header;
  const std::string head = ReadAt(fd, sizeof header, 0);
  if (head.size() < sizeof header) return Refused(program.path, "the ELF file is cut off");
  std::memcpy(&header, head.data(), sizeof header);
  for (int i = 0; i < std::min<int>(header.e_phnum, kProgramHeadersMax); ++i) {
    ProgramHeader entry;
    const std::string bytes = ReadAt(fd, sizeof entry, static_cast<off_t>(header.e_phoff) + i * header.e_phentsize);
    if (bytes.size() < sizeof entry) return Refused(program.path, "the ELF file is cut off");
    std::memcpy(&entry, bytes.data(), sizeof entry);
    if (entry.p_type != PT_INTERP) continue;
    const std::string loader =
        ReadAt(fd, std::min<std::size_t>(entry.p_filesz, PATH_MAX), static_cast<off_t>(entry.p_offset)).c_str();
    program.interpreter = loader;
    struct stat info;
    if (stat(loader.c_str(), &info) != 0) {
      return Refused(program.path, absl::StrCat("its ELF loader ", policy::Quote(loader),
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

absl::Status LookInside(const std::string& path_list, Program& program) {
  const UniqueFd fd(open(program.file.real.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return absl::OkStatus();  // executable but not readable: the kernel will say
  const std::string head = ReadAt(fd.get(), kFirstLineBytesMax, 0);
  if (head.empty()) return Refused(program.path, "it is empty");
  if (absl::StartsWith(head, "#!")) return LookAtScript(head, path_list, program);
  if (!absl::StartsWith(head, ELFMAG)) return absl::OkStatus();  // binfmt_misc may know it
  if (head.size() < sizeof(Elf32_Ehdr)) return Refused(program.path, "the ELF file is cut off");
  Elf32_Half machine;  // at the same place in both classes
  std::memcpy(&machine, head.data() + offsetof(Elf32_Ehdr, e_machine), sizeof machine);
  if (!MachineFits(machine)) return Refused(program.path, "it is built for another kind of machine");
  return head[EI_CLASS] == ELFCLASS64 ? LookAtElf<Elf64_Ehdr, Elf64_Phdr>(fd.get(), program)
                                      : LookAtElf<Elf32_Ehdr, Elf32_Phdr>(fd.get(), program);
}

}  // namespace

absl::StatusOr<std::string> FindOnPath(absl::string_view name, absl::string_view path_list, MayWrite may_write) {
  std::string passed_over;
  for (absl::string_view folder : absl::StrSplit(path_list, ':')) {
    if (folder.empty() || folder[0] != '/') continue;  // the current folder, by whatever name, is never searched
    std::string path = absl::StrCat(absl::StripSuffix(folder, "/"), "/", name);
    struct stat info;
    if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || !MayBeExecutable(info)) continue;
    if (!IsWritable(folder, may_write) && !IsWritable(path, may_write)) return path;
    if (passed_over.empty()) passed_over = path;
  }
  if (!passed_over.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "command ", policy::Quote(name), " was found only as ", policy::Quote(passed_over),
        ", where the policy lets the server write; what is there may be the server's own work. Give its full path if "
        "that is the one you mean"));
  }
  return absl::NotFoundError(
      absl::StrCat("command ", policy::Quote(name), " was not found on the server's PATH (",
                   path_list.empty() ? "which is empty" : path_list,
                   "); install it, give its full path, or let the policy pass a PATH that has it"));
}

absl::StatusOr<Program> FindProgram(const std::string& name, bool look_up, const std::string& path_list,
                                    MayWrite server_may_write) {
  Program program;
  program.path = name;
  if (look_up) {
    absl::StatusOr<std::string> found = FindOnPath(name, path_list, server_may_write);
    if (!found.ok()) return found.status();
    program.path = *std::move(found);
  }
  absl::StatusOr<ResolvedPath> file = ResolvePath(program.path);
  if (absl::IsNotFound(file.status()))
    return absl::NotFoundError(absl::StrCat("command not found: ", file.status().message()));
  if (!file.ok()) return Refused(program.path, file.status().message());
  program.file = *std::move(file);
  if (program.file.is_folder()) return Refused(program.path, "it is a folder, not a program");
  if (!S_ISREG(program.file.info.st_mode)) return Refused(program.path, "it is not a regular file");
  if (!MayBeExecutable(program.file.info)) return Refused(program.path, "it is not executable; chmod +x makes it so");
  const absl::Status status = LookInside(path_list, program);
  if (!status.ok()) return status;
  return program;
}

}  // namespace bulkhead::launcher
