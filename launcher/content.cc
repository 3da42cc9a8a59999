#include "bulkhead/launcher/content.h"

#include <fcntl.h>
#include <sodium/crypto_hash_sha256.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/unique_fd.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

constexpr std::size_t kBlockBytes = 256 << 10;

absl::Status Refused(const std::string& path, absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat("can't check the content of ", policy::Quote(path), ": ", why));
}

bool SameState(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

absl::StatusOr<Content> ReadContent(const std::string& path) {
  // O_NONBLOCK: the open of a FIFO must not wait for a writer.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  Content content;
  if (!fd.valid() || fstat(fd.get(), &content.info) != 0) return Refused(path, strerror(errno));
  if (!S_ISREG(content.info.st_mode)) return Refused(path, "it is not a regular file");
  crypto_hash_sha256_state hash;
  crypto_hash_sha256_init(&hash);
  std::vector<unsigned char> block(kBlockBytes);
  // Bounded by the size that was seen: one that grows faster than it is read is noticed, not followed.
  for (off_t left = content.info.st_size; left > 0;) {
    const ssize_t count = read(fd.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Refused(path, strerror(errno));
    if (count == 0) break;
    crypto_hash_sha256_update(&hash, block.data(), static_cast<unsigned long long>(count));
    left -= count;
  }
  struct stat after;
  if (fstat(fd.get(), &after) != 0) return Refused(path, strerror(errno));
  if (!SameState(content.info, after)) return Refused(path, "it changes while it is read");
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_final(&hash, digest);
  content.sha256 = absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), sizeof digest));
  return content;
}

}  // namespace bulkhead::launcher
