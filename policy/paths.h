// Paths as text. Nothing here looks at a file: links and mounts are found out when a path is opened.
#ifndef BULKHEAD_POLICY_PATHS_H_
#define BULKHEAD_POLICY_PATHS_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// PATH_MAX of Linux holds the final NUL too.
inline constexpr std::size_t kPathBytesMax = 4095;

// What keeps a text from being the name of a file.
enum class PathProblem { kNone, kEmpty, kNotAbsolute, kDotDot, kControlCharacter, kTooLong, kNoDrive, kOtherName };

// Writes `path` without empty and "." components and without a slash at the end to `*normal`. A ".." is a problem, not
// resolved: without looking at links nobody knows where it leads.
//
// Windows: "c:/data/x" becomes "C:\data\x". Only paths on a drive; no component that Windows reads as another name
// ("x.", "x "), as a device ("NUL.txt") or as a stream ("x:s"). Short names ("PROGRA~1") are names like others.
PathProblem NormalisePath(absl::string_view path, std::string* normal, Platform platform = Platform::kPosix);

// Whether `path` begins as one on a drive does: "C:\x", "c:/x".
bool BeginsWithDrive(absl::string_view path);

// For messages: "is not absolute".
absl::string_view PathProblemText(PathProblem problem);

// Of a path; on Windows a backslash counts, too.
bool HasSlash(absl::string_view text, Platform platform);
bool HasDotDot(absl::string_view path);
// Of Unicode's category Cc, in UTF-8: C0, DEL and C1.
bool HasControlCharacter(absl::string_view text);

// Whether `path` is `folder` or lies beneath it. Both normal, and compared letter by letter: also on Windows, where a
// folder may be told to.
bool IsWithin(absl::string_view path, absl::string_view folder);

// The folder that `path` is in: "/a" for "/a/b". "." when it has none.
std::string FolderOf(absl::string_view path, Platform platform = Platform::kPosix);

// `path` from `folder`, with ".." resolved as text, as for the files that policies name of each other. Absolute if
// `folder` or `path` is. Windows: "C:/x/y", "//server/share/y", for names with either kind of slash.
std::string JoinPath(absl::string_view folder, absl::string_view path, Platform platform = Platform::kPosix);

// What messages call the policy file at `path`: as it was given, but "./preset:x" for a file called "preset:x", since a
// preset is trusted with more.
std::string PolicyFileName(const std::string& path);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_PATHS_H_
