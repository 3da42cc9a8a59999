#include "bulkhead/cli/talk.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "asio/bind_cancellation_slot.hpp"
#include "bulkhead/cli/interrupts.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::cli {
namespace {

constexpr std::chrono::milliseconds kQuietTime(700), kRefreshTime(1000);
constexpr std::chrono::seconds kTailTime(5);  // a server that takes longer to start may have said why
constexpr std::size_t kProgressColumnsMax = 78;
constexpr std::size_t kShownBytesMax = 60;  // of what somebody typed

absl::string_view LastLine(absl::string_view text) {
  const std::size_t newline = text.rfind('\n');
  return newline == absl::string_view::npos ? text : text.substr(newline + 1);
}

}  // namespace

// --- ProgressLine ---

ProgressLine::ProgressLine(asio::io_context& io, std::function<std::string()> text)
    : is_terminal_(isatty(STDERR_FILENO) == 1), text_(std::move(text)), timer_(io) {
  if (is_terminal_) Await(kQuietTime);
}

ProgressLine::~ProgressLine() {
  timer_.cancel();
  if (is_shown_) (void)!write(STDERR_FILENO, "\r\x1b[K", 4);
}

void ProgressLine::Show() {
  if (!is_terminal_) return;
  is_shown_ = true;
  std::string line = policy::Visible(text_());
  std::size_t end = std::min(line.size(), kProgressColumnsMax);
  while (end > 0 && end < line.size() && (line[end] & 0xC0) == 0x80) --end;  // whole characters
  line = absl::StrCat("\r\x1b[K", line.substr(0, end));
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

void ProgressLine::Await(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([this](asio::error_code cancelled) {
    if (cancelled) return;
    Show();
    Await(kRefreshTime);
  });
}

// --- Talk ---

mcp::EraChoice EraOf(const Flags& flags) {
  switch (flags.era) {
    case EraFlag::kAuto:
      return mcp::EraChoice::kAuto;
    case EraFlag::kLegacy:
      return mcp::EraChoice::kLegacy;
    case EraFlag::kModern:
      return mcp::EraChoice::kModern;
  }
  return mcp::EraChoice::kAuto;
}

std::string ProgressText(const mcp::Progress& progress) {
  return absl::StrCat(progress.progress, progress.total ? absl::StrCat(" of ", *progress.total) : "",
                      progress.message.empty() ? "" : ": ", progress.message);
}

absl::Status CheckJsonObject(absl::string_view flag, absl::string_view text, absl::string_view example) {
  if (jsonrpc::ValidateJson(text) != jsonrpc::JsonError::kNone) {
    // Most often it is the shell that has taken the quotation marks away.
    return absl::InvalidArgumentError(absl::StrCat(flag, " is not JSON: ", text.substr(0, kShownBytesMax),
                                                   text.size() > kShownBytesMax ? "..." : "",
                                                   "; in a shell put it in single quotes: ", flag, " '", example, "'"));
  }
  if (absl::StripLeadingAsciiWhitespace(text).substr(0, 1) == "{") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " must be a JSON object, such as ", example));
}

Talk::Talk(const Flags& flags, Loaded loaded) : flags_(flags), program_(flags.rest.front()) {
  mcp::SessionOptions options;
  options.era = EraOf(flags);
  options.restart = false;
  // What it says on stderr is part of an error's message, and otherwise of interest only to those who ask for it.
  if (!flags.verbose && flags.stderr_to != "inherit") options.on_stderr = [](absl::string_view) {};
  if (flags.verbose) {
    options.on_dropped = [](absl::string_view line, absl::string_view why) {
      Complain(absl::StrCat("a line that ", why, ": ", Quote(line.substr(0, 200))));
    };
  }
  session_ = std::make_unique<mcp::Session>(io_.get_executor(), std::move(loaded.policy),
                                            std::move(loaded.request.command), std::move(options));
}

void Talk::RunUntil(const std::function<bool()>& is_done) {
  const Interrupts interrupts(io_, [this](int signal) { OnInterrupt(signal); });
  while (signal_ == 0 ? !is_done() : !is_closed_) io_.run_one();
  if (signal_ != 0) EndBy(signal_);
}

void Talk::OnInterrupt(int signal) {
  signal_ = signal;
  if (is_closing_) {
    session_.reset();  // which kills the server; Close's handler is called all the same
    return;
  }
  cancel_.emit(asio::cancellation_type::terminal);
  Close();
}

void Talk::Close() {
  is_closing_ = true;
  session_->AsyncClose([this](const mcp::ServerEnd&) { is_closed_ = true; });
}

std::function<std::string()> Talk::UnlessStopping(std::function<std::string()> text) {
  return [this, text = std::move(text)] { return signal_ == 0 ? text() : kStoppingText; };
}

// Runs everything until `start`'s handler was called.
template <typename Value, typename Start>
Value Talk::Await(Start start) {
  std::optional<Value> value;
  start([&value](Value result) { value.emplace(std::move(result)); });
  RunUntil([&value] { return value.has_value(); });
  return *std::move(value);
}

int Talk::Begin(Command command, const Flags& flags, std::unique_ptr<Talk>* talk) {
  std::optional<Loaded> loaded;
  if (const int code = Load(command, flags, &loaded); code != 0) return code;
  talk->reset(new Talk(flags, *std::move(loaded)));
  Talk& self = **talk;
  const auto started = std::chrono::steady_clock::now();
  absl::Status status;
  {
    ProgressLine line(self.io_, self.UnlessStopping([&self, started] {
      const auto time = std::chrono::steady_clock::now() - started;
      std::string text = absl::StrCat("starting ", self.program_, ": ",
                                      std::chrono::duration_cast<std::chrono::seconds>(time).count(), " s");
      const std::string tail = self.session_->stderr_tail();
      if (time >= kTailTime && !tail.empty()) absl::StrAppend(&text, ", it says: ", LastLine(tail));
      return text;
    }));
    status = self.Await<absl::Status>([&self](auto handler) { self.session_->AsyncConnect(std::move(handler)); });
  }
  if (status.ok()) return 0;
  return FailLaunch(command, status);
}

Talk::~Talk() {
  Close();
  RunUntil([this] { return is_closed_; });
}

mcp::CallOptions Talk::MakeCallOptions() {
  mcp::CallOptions options;
  if (flags_.timeout) options.timeout = *flags_.timeout;
  if (isatty(STDERR_FILENO) == 1) {
    options.on_progress = [this](const mcp::Progress& progress) { progress_ = ProgressText(progress); };
  }
  return options;
}

absl::StatusOr<mcp::Reply> Talk::Call(const std::string& method, const std::string& params) {
  ProgressLine line(io_, UnlessStopping([this, &method] {
                      return absl::StrCat("waiting for ", method, progress_.empty() ? "" : ", ", progress_);
                    }));
  return Await<absl::StatusOr<mcp::Reply>>([&](auto handler) {
    session_->AsyncCall(method, params, MakeCallOptions(),
                        asio::bind_cancellation_slot(cancel_.slot(), std::move(handler)));
  });
}

absl::StatusOr<std::vector<std::string>> Talk::List(const std::string& method, const std::string& member) {
  ProgressLine line(io_, UnlessStopping([&method] { return absl::StrCat("waiting for ", method); }));
  return Await<absl::StatusOr<std::vector<std::string>>>(
      [&](auto handler) { session_->AsyncList(method, member, MakeCallOptions(), std::move(handler)); });
}

bool Talk::Offers(absl::string_view capability) const {
  return jsonrpc::FindMember(session_->server_info().capabilities, capability).has_value();
}

// --- Words ---

std::string Harmless(absl::string_view text, absl::string_view kept) {
  return isatty(STDOUT_FILENO) == 1 ? policy::Visible(text, kept) : std::string(text);
}

std::string TextMember(absl::string_view object, absl::string_view key) {
  const auto value = jsonrpc::FindMember(object, key);
  return value ? jsonrpc::StringValue(*value).value_or("") : "";
}

std::string ErrorJson(const jsonrpc::ErrorObject& error) {
  return absl::StrCat("{\"code\":", error.code, ",\"message\":", jsonrpc::QuoteJson(error.message),
                      error.data.empty() ? "" : absl::StrCat(",\"data\":", error.data), "}");
}

int FailAnswered(absl::string_view method, const jsonrpc::ErrorObject& error) {
  Complain(absl::StrCat("the server answered ", method, " with an error: ", error.message, " (code ", error.code, ")",
                        error.data.empty() ? "" : absl::StrCat(": ", error.data)));
  return kExitAnsweredError;
}

}  // namespace bulkhead::cli
