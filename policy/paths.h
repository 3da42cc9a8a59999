// Paths as text. Nothing here looks at a file: links and mounts are found out when a path is opened.
#ifndef BULKHEAD_POLICY_PATHS_H_
#define BULKHEAD_POLICY_PATHS_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace bulkhead::policy {

// PATH_MAX of Linux holds the final NUL too.
inline constexpr std::size_t kPathBytesMax = 4095;

// What keeps a text from being the name of a file.
enum class PathProblem { kNone, kEmpty, kNotAbsolute, kDotDot, kControlCharacter, kTooLong };

// Writes `path` without empty and "." components and without a slash at the end to `*normal`. A ".." is a problem, not
// resolved: without looking at links nobody knows where it leads.
PathProblem NormalisePath(absl::string_view path, std::string* normal);

// For messages: "is not absolute".
absl::string_view PathProblemText(PathProblem problem);

bool HasDotDot(absl::string_view path);
// Of Unicode's category Cc, in UTF-8: C0, DEL and C1.
bool HasControlCharacter(absl::string_view text);

// Whether `path` is `folder` or lies beneath it. Both normal.
bool IsWithin(absl::string_view path, absl::string_view folder);

// The folder that `path` is in: "/a" for "/a/b". "." when it has none.
absl::string_view FolderOf(absl::string_view path);

// `path` from `folder`, with ".." resolved as text, as for the files that policies name of each other. Absolute if
// `folder` or `path` is.
std::string JoinPath(absl::string_view folder, absl::string_view path);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_PATHS_H_
