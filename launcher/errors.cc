#include "bulkhead/launcher/errors.h"

#include <errno.h>
#include <string.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace bulkhead::launcher {

absl::Status OurError(absl::string_view what, int error) {
  const std::string text = absl::StrCat(what, ": ", strerror(error));
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
