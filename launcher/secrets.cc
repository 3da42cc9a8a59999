#include "bulkhead/launcher/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/handover.h"
#include "bulkhead/launcher/plan_format.h"
#include "bulkhead/policy/secret.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

using policy::EnvEntry;
using policy::Secret;

// Whoever writes to the other end of a descriptor is expected to have done so; a program that asks a person takes
// longer.
constexpr int kDescriptorTimeoutMs = 60'000;

absl::Status Refuse(const EnvEntry& entry, absl::string_view why) {
  const policy::SecretSource& source = entry.secret;
  const std::string where = source.env.has_value()    ? absl::StrCat("the variable ", policy::Quote(*source.env))
                            : source.file.has_value() ? absl::StrCat("the file ", policy::Quote(*source.file))
                                                      : absl::StrCat("descriptor ", source.fd.value_or(-1));
  return absl::FailedPreconditionError(
      absl::StrCat("cannot give the server its secret ", entry.name, ": ", where, " ", why));
}

// Up to the limit and one byte, which then shows that there is more. False: errno.
bool ReadAll(int fd, Secret& secret) {
  secret = Secret::OfSize(wire::kSecretsBytesMax + 1);
  std::size_t filled = 0;
  while (filled < secret.size()) {
    pollfd ready = {fd, POLLIN, 0};
    const int count = poll(&ready, 1, kDescriptorTimeoutMs);
    if (count == 0) errno = ETIMEDOUT;
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const ssize_t bytes = read(fd, secret.Fill().data() + filled, secret.size() - filled);
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes < 0) return false;
    if (bytes == 0) break;
    filled += static_cast<std::size_t>(bytes);
  }
  secret.Resize(filled);
  secret.StripNewline();
  return true;
}

absl::StatusOr<Secret> ReadFile(const EnvEntry& entry) {
  const std::string& path = *entry.secret.file;
  const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;  // the open of a FIFO must not wait for a writer
  const UniqueFd fd =
      entry.secret.follow_links ? UniqueFd(open(path.c_str(), flags)) : OpenWithoutLinks(path, flags, 0);
  struct stat info;
  if (!fd.valid() && errno == ELOOP) {
    return Refuse(entry,
                  "has a symbolic link in its path, and links are not followed where a variable or a ceiling has a "
                  "say in it; write the path without links");
  }
  if (!fd.valid() || fstat(fd.get(), &info) != 0)
    return Refuse(entry, absl::StrCat("can't be read: ", strerror(errno)));
  if (!S_ISREG(info.st_mode)) return Refuse(entry, "is not a regular file");
  Secret secret;
  if (!ReadAll(fd.get(), secret)) return Refuse(entry, absl::StrCat("can't be read: ", strerror(errno)));
  return secret;
}

absl::StatusOr<Secret> ReadDescriptor(const EnvEntry& entry) {
  const int fd = *entry.secret.fd;
  struct stat info;
  if (fstat(fd, &info) != 0) return Refuse(entry, "is not open; open it in the program that starts bulkhead");
  if (S_ISREG(info.st_mode) && lseek(fd, 0, SEEK_SET) != 0) return Refuse(entry, strerror(errno));
  Secret secret;
  if (!ReadAll(fd, secret)) return Refuse(entry, absl::StrCat("can't be read: ", strerror(errno)));
  return secret;
}

absl::StatusOr<Secret> ReadSecret(const EnvEntry& entry) {
  if (entry.secret.file.has_value()) return ReadFile(entry);
  if (entry.secret.fd.has_value()) return ReadDescriptor(entry);
  const char* value = getenv(entry.secret.env.value_or("").c_str());
  if (value == nullptr) return Refuse(entry, "is not set");
  Secret secret = Secret::OfSize(strlen(value));
  std::copy_n(value, secret.size(), secret.Fill().data());
  return secret;
}

}  // namespace

absl::StatusOr<UniqueFd> SecretsPipe(const std::vector<EnvEntry>& env) {
  std::vector<std::pair<const EnvEntry*, Secret>> secrets;
  std::size_t total = 0;
  for (const EnvEntry& entry : env) {
    if (entry.source != EnvEntry::Source::kSecret) continue;
    absl::StatusOr<Secret> secret = ReadSecret(entry);
    if (!secret.ok()) return secret.status();
    const std::string why_not = policy::WhyNoEnvValue(entry.name, *secret);
    if (!why_not.empty()) return Refuse(entry, why_not);
    total += entry.name.size() + 1 + secret->size() + 1;
    if (total > wire::kSecretsBytesMax) {
      return Refuse(entry,
                    absl::StrCat("is too long: all secrets together may have ", wire::kSecretsBytesMax, " bytes"));
    }
    secrets.emplace_back(&entry, *std::move(secret));
  }
  if (secrets.empty()) return UniqueFd();

  Secret all = Secret::OfSize(total);
  char* at = all.Fill().data();
  for (const auto& [entry, secret] : secrets) {
    at = std::copy(entry->name.begin(), entry->name.end(), at);
    *at++ = '=';
    at = std::copy_n(secret.Reveal().data(), secret.size(), at);
    *at++ = '\0';
  }
  constexpr char kWhat[] = "cannot pass the server's secrets through a pipe";
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return OurError(kWhat, errno);
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  // The keeper reads when all is written: what doesn't fit must fail, not wait. A user with many pipes gets small ones.
  fcntl(writer.get(), F_SETPIPE_SZ, wire::kSecretsBytesMax);
  if (fcntl(writer.get(), F_SETFL, O_NONBLOCK) != 0 || !MoveAboveTargets(reader)) return OurError(kWhat, errno);
  const ssize_t written = write(writer.get(), all.Reveal().data(), all.size());
  if (written < 0) return OurError(kWhat, errno);
  if (static_cast<std::size_t>(written) != all.size()) return OurError(kWhat, ENOMEM);
  return reader;
}

}  // namespace bulkhead::launcher
