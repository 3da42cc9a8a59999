#include "bulkhead/launcher/failure.h"

#include <string.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/errors.h"

namespace bulkhead::launcher {
namespace {

// Copies, since nothing in the text is aligned for certain.
template <typename T>
std::optional<T> ItemAt(const std::string& bytes, uint64_t offset, uint64_t index = 0) {
  offset += index * sizeof(T);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T item;
  memcpy(&item, bytes.data() + offset, sizeof(T));
  return item;
}

std::string TextAt(const std::string& bytes, wire::Offset offset) {
  if (offset >= bytes.size()) return "";
  return std::string(bytes, offset, strnlen(bytes.data() + offset, bytes.size() - offset));
}

struct Failed {
  wire::Offset failures = 0;
  bool needs_namespaces = false;
};

std::optional<Failed> FindFailed(const std::string& bytes, const wire::Message& message) {
  const auto plan = ItemAt<wire::Plan>(bytes, 0);
  if (!plan || message.variant >= plan->variant_count) return std::nullopt;
  const auto variant = ItemAt<wire::Variant>(bytes, plan->variants, message.variant);
  if (!variant) return std::nullopt;
  wire::StepList list = {};
  switch (message.phase) {
    case wire::Phase::kNone:
      return std::nullopt;
    case wire::Phase::kNamespaces:
      return Failed{variant->clone_failures, true};
    case wire::Phase::kStartServer:
      return Failed{variant->start_failures, false};
    case wire::Phase::kKeeper:
      list = variant->keeper;
      break;
    case wire::Phase::kInit:
      list = variant->init;
      break;
    case wire::Phase::kServer:
      list = variant->server;
      break;
  }
  if (message.step >= list.count) return std::nullopt;
  const auto step = ItemAt<wire::Step>(bytes, list.steps, message.step);
  if (!step) return std::nullopt;
  return Failed{step->failures, (step->flags & wire::kNeedsNamespaces) != 0};
}

absl::Status Unexplained(const wire::Message& message) {
  return absl::InternalError(absl::StrCat("cannot start the server: phase ", static_cast<uint32_t>(message.phase),
                                          ", step ", message.step, " failed: ", strerror(message.error)));
}

absl::StatusCode CodeOf(uint16_t exit_code, bool needs_namespaces) {
  if (exit_code == 127) return absl::StatusCode::kNotFound;
  if (exit_code == 126) return absl::StatusCode::kPermissionDenied;
  return needs_namespaces ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kInternal;
}

}  // namespace

absl::Status StatusOfFailure(const std::string& plan_bytes, const wire::Message& message) {
  if (message.phase == wire::Phase::kNone) {
    return absl::InternalError("cannot start the server: it was stopped before it ran");
  }
  const std::optional<Failed> failed = FindFailed(plan_bytes, message);
  if (!failed || failed->failures == 0) return Unexplained(message);
  for (uint64_t i = 0;; ++i) {
    const auto failure = ItemAt<wire::Failure>(plan_bytes, failed->failures, i);
    if (!failure) return Unexplained(message);
    if (failure->error != 0 && failure->error != message.error) continue;
    std::string text = TextAt(plan_bytes, failure->text);
    for (const wire::Offset part : {failure->subject, failure->rest}) {
      if (part != 0) absl::StrAppend(&text, TextAt(plan_bytes, part));
    }
    if (failure->show_error != 0) absl::StrAppend(&text, ": ", ErrorText(message.error));
    return absl::Status(CodeOf(failure->exit_code, failed->needs_namespaces), text);
  }
}

}  // namespace bulkhead::launcher
