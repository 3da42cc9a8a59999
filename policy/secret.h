// A Secret holds bytes that nobody but the server may see. It can't be copied, printed, streamed, put into a message or
// compared by accident: whoever needs the bytes calls Reveal, which is easy to find in a review. They are wiped when it
// ends, is moved from or is assigned to, and lie in one block that never moves, so that no copy is left behind.
//
// It does not keep them from the kernel's swap, from a core dump or from a debugger.
#ifndef BULKHEAD_POLICY_SECRET_H_
#define BULKHEAD_POLICY_SECRET_H_

#include <cstddef>
#include <memory>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bulkhead::policy {

// Overwrites `size` bytes, also where the compiler sees that nobody reads them again.
void Wipe(char* bytes, std::size_t size);

class Secret {
 public:
  Secret() = default;
  // Takes the bytes over; `bytes` is wiped and empty afterwards. There is no way from a string that would stay behind.
  explicit Secret(std::string&& bytes);
  // `size` zero bytes, to be filled by reading into Fill, then cut by Resize.
  static Secret OfSize(std::size_t size);

  ~Secret();
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  absl::Span<char> Fill() { return absl::Span<char>(bytes_.get(), size_); }
  // Makes it shorter; what is cut off is wiped. A `size` that is not smaller changes nothing.
  void Resize(std::size_t size);
  // The end of the line that editors and `echo` put at the end of a file is no part of the secret: takes off one "\n"
  // or
  // "\r\n".
  void StripNewline();

  // The bytes, valid as long as the Secret is neither moved nor changed. Copy them nowhere but into the server's
  // environment.
  absl::string_view Reveal() const { return absl::string_view(bytes_.get(), size_); }

  friend bool operator==(const Secret&, const Secret&) = delete;
  friend bool operator!=(const Secret&, const Secret&) = delete;
  friend std::ostream& operator<<(std::ostream&, const Secret&) = delete;

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
};

// Why `secret` can't be the value of the environment variable `name`: "is empty; ...", "holds a NUL character; ...".
// Empty if it can. Never repeats any of it.
std::string WhyNoEnvValue(absl::string_view name, const Secret& secret);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_SECRET_H_
