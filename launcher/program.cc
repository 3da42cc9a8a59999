#include "bulkhead/launcher/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
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

// Any of the three execute bits: which of them counts depends on who the server will be; the kernel has the last word.
bool MayBeExecutable(const struct stat& info) { return (info.st_mode & 0111) != 0; }

bool IsWritable(absl::string_view path, MayWrite may_write) {
  const absl::StatusOr<ResolvedPath> resolved = ResolvePath(path);
  return resolved.ok() && may_write(resolved->real);
}

absl::Status LookAtScript(const std::string& head, const std::string& path_list, Program& program) {
  absl::string_view line(head);
  line = line.substr(2, line.find('\n') - 2);
  const std::vector<std::string> words =
      absl::StrSplit(absl::StripAsciiWhitespace(line), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.empty()) return RefuseProgram(program.path, "its first line names no interpreter");
  program.interpreter = words[0];
  program.is_script = true;
  struct stat info;
  if (stat(words[0].c_str(), &info) != 0) {
    return RefuseProgram(program.path, absl::StrCat("it is a script and its interpreter ", policy::Quote(words[0]),
                                                    " (first line) does not exist; install it"));
  }
  if (words.size() < 2 || !absl::EndsWith(words[0], "/env")) return absl::OkStatus();
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i][0] == '-' || absl::StrContains(words[i], "=")) continue;
    const absl::StatusOr<std::string> found = FindOnPath(words[i], path_list, [](const std::string&) { return false; });
    if (found.ok()) return absl::OkStatus();
    return RefuseProgram(program.path, absl::StrCat("it is a script for ", policy::Quote(words[i]),
                                                    ", which is not on the server's PATH: ", path_list));
  }
  return absl::OkStatus();
}

absl::Status LookInside(const std::string& path_list, LookAtElf look_at_elf, Program& program) {
  const UniqueFd fd(open(program.file.real.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return absl::OkStatus();  // executable but not readable: the kernel will say
  std::string head(kFirstLineBytesMax, '\0');
  const ssize_t got = pread(fd.get(), head.data(), head.size(), 0);
  head.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (head.empty()) return RefuseProgram(program.path, "it is empty");
  if (absl::StartsWith(head, "#!")) return LookAtScript(head, path_list, program);
  return look_at_elf == nullptr ? absl::OkStatus() : look_at_elf(fd.get(), head, program);
}

}  // namespace

absl::Status RefuseProgram(absl::string_view path, absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat("can't run ", policy::Quote(path), ": ", why));
}

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
                                    MayWrite server_may_write, LookAtElf look_at_elf) {
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
  if (!file.ok()) return RefuseProgram(program.path, file.status().message());
  program.file = *std::move(file);
  if (program.file.is_folder()) return RefuseProgram(program.path, "it is a folder, not a program");
  if (!S_ISREG(program.file.info.st_mode)) return RefuseProgram(program.path, "it is not a regular file");
  if (!MayBeExecutable(program.file.info))
    return RefuseProgram(program.path, "it is not executable; chmod +x makes it so");
  const absl::Status status = LookInside(path_list, look_at_elf, program);
  if (!status.ok()) return status;
  return program;
}

}  // namespace bulkhead::launcher
