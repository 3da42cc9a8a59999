#include "bulkhead/launcher/errors.h"

#include <errno.h>
#include <string.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace bulkhead::launcher {
namespace {

// What helps, where the error alone says it; the keeper's own words are in keeper/text.cc.
absl::string_view Remedy(int error) {
  switch (error) {
    case EAGAIN:
      return "; too many processes or threads: end some, or raise the limit (ulimit -u, or the cgroup's pids.max)";
    case EMFILE:
      return "; raise the limit (ulimit -n)";
    case EFBIG:
      return "; raise the limit of file sizes (ulimit -f)";
    case ENOSYS:
      return "; this kernel is too old, or a container's system call filter has to let the call pass";
    case ESRCH:
      return "; /proc shows another process id namespace: mount this one's (unshare has --mount-proc)";
    default:
      return "";
  }
}

}  // namespace

std::string ErrorText(int error) { return absl::StrCat(strerror(error), Remedy(error)); }

absl::Status OurError(absl::string_view what, int error) {
  const std::string text = absl::StrCat(what, ": ", ErrorText(error));
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case ENOSPC:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace bulkhead::launcher
