#include "bulkhead/policy/secret.h"

#include <string.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/forms.h"

namespace bulkhead::policy {

void Wipe(char* bytes, std::size_t size) {
#if defined(__GLIBC__)
  if (size > 0) explicit_bzero(bytes, size);  // bzero(3): not optimized away
#else
  for (volatile char* at = bytes; size > 0; --size) *at++ = 0;
#endif
}

Secret::Secret(std::string&& bytes) : bytes_(new char[bytes.size()]), size_(bytes.size()) {
  std::memcpy(bytes_.get(), bytes.data(), size_);
  // The capacity: what was there before the string got shorter may be a part of the secret.
  bytes.resize(bytes.capacity());
  Wipe(&bytes[0], bytes.size());
  bytes.clear();
}

Secret Secret::OfSize(std::size_t size) {
  Secret secret;
  secret.bytes_ = std::make_unique<char[]>(size);
  secret.size_ = size;
  return secret;
}

Secret::~Secret() { Wipe(bytes_.get(), size_); }

Secret::Secret(Secret&& other) noexcept
    : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, std::size_t{0})) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this == &other) return *this;
  Wipe(bytes_.get(), size_);
  bytes_ = std::move(other.bytes_);
  size_ = std::exchange(other.size_, std::size_t{0});
  return *this;
}

void Secret::Resize(std::size_t size) {
  if (size >= size_) return;
  Wipe(bytes_.get() + size, size_ - size);
  size_ = size;
}

void Secret::StripNewline() {
  if (size_ == 0 || bytes_[size_ - 1] != '\n') return;
  const bool is_crlf = size_ > 1 && bytes_[size_ - 2] == '\r';
  Resize(size_ - (is_crlf ? 2 : 1));
}

std::string WhyNoEnvValue(absl::string_view name, const Secret& secret) {
  if (secret.empty()) return "is empty; put the secret there, or leave it out of /env/secret";
  if (name.size() + 1 + secret.size() > kArgumentBytesMax) {
    return absl::StrCat("is longer than the ", kArgumentBytesMax - name.size() - 1,
                        " bytes that its variable may have; is it the right one?");
  }
  return CheckEnvValue(secret.Reveal());
}

}  // namespace bulkhead::policy
