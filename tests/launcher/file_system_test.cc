#include "bulkhead/launcher/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ios>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_fixture.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;

class FileSystemTest : public testing::Test {
 protected:
  std::string RealOf(const std::string& path) const {
    const absl::StatusOr<ResolvedPath> resolved = ResolvePath(path);
    return resolved.ok() ? resolved->real : std::string(resolved.status().message());
  }
  Host host_;
};

TEST_F(FileSystemTest, PathsAreNormalAndWithoutLinks) {
  const std::string file = host_.File("data/file", "");
  host_.Link("data", "relative");
  host_.Link(host_ / "relative", "absolute");
  EXPECT_EQ(RealOf("/"), "/");
  EXPECT_EQ(RealOf("/.."), "/");
  EXPECT_EQ(RealOf(host_ / "data//./file"), file);
  EXPECT_EQ(RealOf(host_ / "data/../data/file"), file);
  EXPECT_EQ(RealOf(host_ / "relative/file"), file);
  EXPECT_EQ(RealOf(host_ / "absolute/file"), file);
  EXPECT_EQ(RealOf(host_ / "data/"), host_ / "data");
}

TEST_F(FileSystemTest, DotsAfterALinkStartFromItsTarget) {
  host_.File("far/away/file", "");
  host_.Link("far/away", "link");
  EXPECT_EQ(RealOf(host_ / "link/.."), host_ / "far");
}

TEST_F(FileSystemTest, LinksOnTheWayAreListedInOrder) {
  host_.File("data/file", "");
  host_.Link("data", "one");
  host_.Link("one", "two");
  const absl::StatusOr<ResolvedPath> resolved = ResolvePath(host_ / "two/file");
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  ASSERT_EQ(resolved->links.size(), 2u);
  EXPECT_EQ(resolved->links[0].at, host_ / "two");
  EXPECT_EQ(resolved->links[0].text, "one");
  EXPECT_EQ(resolved->links[1].at, host_ / "one");
}

TEST_F(FileSystemTest, ErrorsNameWhatIsAtFault) {
  host_.File("file", "");
  EXPECT_THAT(RealOf(host_ / "none/deeper"),
              HasSubstr(absl::StrCat("\"", host_ / "none/deeper", "\" does not exist: nothing at \"", host_ / "none")));
  EXPECT_TRUE(absl::IsNotFound(ResolvePath(host_ / "none").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(ResolvePath(host_ / "file/deeper").status()));
  EXPECT_THAT(RealOf(host_ / "file/deeper"), HasSubstr("Not a directory"));
  host_.Link("nowhere", "dangling");
  EXPECT_TRUE(absl::IsNotFound(ResolvePath(host_ / "dangling").status()));
}

TEST_F(FileSystemTest, AsManyLinksAsTheKernelFollows) {
  host_.File("link0", "");
  for (int i = 1; i <= kSymlinksMax + 1; ++i) host_.Link(absl::StrCat("link", i - 1), absl::StrCat("link", i));
  // The kernel's own limit. It begins a walk anew when somebody mounts something meanwhile, as other tests do, and goes
  // on counting: only up to half the limit is it sure to come through.
  for (const int links : {kSymlinksMax / 2, kSymlinksMax + 1}) {
    const int fd = open((host_ / absl::StrCat("link", links)).c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(fd >= 0, links <= kSymlinksMax) << "the kernel, " << links;
    if (fd >= 0) close(fd);
  }
  for (const int links : {kSymlinksMax - 1, kSymlinksMax, kSymlinksMax + 1}) {
    EXPECT_EQ(ResolvePath(host_ / absl::StrCat("link", links)).ok(), links <= kSymlinksMax) << links;
  }
}

TEST_F(FileSystemTest, ALoopEnds) {
  host_.Link("b", "a");
  host_.Link("a", "b");
  host_.Link("self/x", "self");
  for (const char* name : {"a", "self"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(ResolvePath(host_ / name).status()));
    EXPECT_THAT(RealOf(host_ / name), HasSubstr("Too many levels of symbolic links"));
  }
}

// ---- Beneath a folder

TEST_F(FileSystemTest, BeneathAFolderLinksMayOnlyStayInside) {
  const std::string folder = host_.Folder("tree");
  host_.File("tree/inside/file", "");
  host_.File("outside/file", "");
  host_.Link("inside", "tree/stays");
  host_.Link("../outside", "tree/leaves");
  host_.Link(host_ / "outside", "tree/jumps");
  host_.Link("inside/../..", "tree/climbs");
  host_.Link(host_ / "tree/inside", "tree/names");
  host_.Link("../tree/inside", "tree/returns");
  EXPECT_TRUE(ResolvePathBeneath(folder, folder).ok());
  EXPECT_TRUE(ResolvePathBeneath(folder + "/inside/file", folder).ok());
  for (const char* name : {"/stays/file", "/names/file", "/returns/file"}) {
    const absl::StatusOr<ResolvedPath> resolved = ResolvePathBeneath(folder + name, folder);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    EXPECT_EQ(resolved->real, folder + "/inside/file");
  }
  for (const char* name : {"/leaves", "/jumps", "/climbs"}) {
    const absl::Status status = ResolvePathBeneath(folder + name, folder).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("leads out of")) << name;
  }
}

TEST_F(FileSystemTest, TheFolderItselfMayBeReachedThroughALink) {
  host_.File("real/file", "");
  const std::string link = host_.Link("real", "work");
  const absl::StatusOr<ResolvedPath> resolved = ResolvePathBeneath(link + "/file", link);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->real, host_ / "real/file");
}

TEST_F(FileSystemTest, AVariableMayNameOneFile) {
  const std::string file = host_.File("file", "");
  EXPECT_TRUE(ResolvePathBeneath(file, file).ok());
}

TEST_F(FileSystemTest, ASetuidFileIsFoundWhereverItLies) {
  host_.File("tree/deep/er/plain", "");
  bool complete = false;
  EXPECT_EQ(FindPrivilegedFile(host_ / "tree", complete).path, "");  // control
  EXPECT_TRUE(complete);
  for (const mode_t bits : {04755u, 02755u, 06600u}) {
    const std::string file = host_.File("tree/deep/er/setid", "");
    ASSERT_EQ(chmod(file.c_str(), bits), 0);
    EXPECT_EQ(FindPrivilegedFile(host_ / "tree", complete).path, file) << std::oct << bits;
    EXPECT_EQ(FindPrivilegedFile(file, complete).path, file) << "granted by itself";
    unlink(file.c_str());
  }
  host_.Link("/usr/bin", "tree/link");  // not followed: nothing of it is granted
  EXPECT_EQ(FindPrivilegedFile(host_ / "tree", complete).path, "");
}

// Deeper than a path can say (PATH_MAX), and than there are descriptors.
TEST_F(FileSystemTest, ASetuidFileIsFoundAtAnyDepth) {
  host_.File("tree/a/file", "");
  const std::string name(200, 'd');
  constexpr int kDepth = 1500;
  int at = open((host_ / "tree").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_EQ(mkdirat(at, name.c_str(), 0755), 0);
    const int below = openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(below, 0);
    close(at);
    at = below;
  }
  bool complete = false;
  EXPECT_EQ(FindPrivilegedFile(host_ / "tree", complete).path, "");  // control
  EXPECT_TRUE(complete);
  const int file = openat(at, "setid", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
  ASSERT_EQ(fchmod(file, 04755), 0);
  close(file);
  EXPECT_THAT(FindPrivilegedFile(host_ / "tree", complete).path, testing::EndsWith("/setid"));
  ASSERT_EQ(unlinkat(at, "setid", 0), 0);
  for (int i = 0; i < kDepth; ++i) {
    const int above = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(unlinkat(above, name.c_str(), AT_REMOVEDIR), 0);
    close(at);
    at = above;
  }
  close(at);
}

TEST_F(FileSystemTest, ASearchThatIsCutOffSaysSo) {
  for (const char* name : {"tree/1", "tree/2", "tree/3"}) host_.File(name, "");
  bool complete = false;
  for (const int entries_max : {3, 4}) {
    FindPrivilegedFile(host_ / "tree", complete, entries_max);
    EXPECT_TRUE(complete) << entries_max;
  }
  FindPrivilegedFile(host_ / "tree", complete, 2);
  EXPECT_FALSE(complete);
}

// ---- Pure

TEST(IsWithinTest, ComparesWholeComponents) {
  EXPECT_TRUE(IsWithin("/a", "/a"));
  EXPECT_TRUE(IsWithin("/a/b", "/a"));
  EXPECT_TRUE(IsWithin("/a/b/c", "/a"));
  EXPECT_FALSE(IsWithin("/ab", "/a"));
  EXPECT_FALSE(IsWithin("/a-b", "/a"));
  EXPECT_FALSE(IsWithin("/a", "/a/b"));
  EXPECT_FALSE(IsWithin("/b", "/a"));
  EXPECT_FALSE(IsWithin("/", "/a"));
  EXPECT_TRUE(IsWithin("/", "/"));
  EXPECT_TRUE(IsWithin("/a", "/"));
}

TEST(MayMapOwnersTest, NotWhereTheKernelSaysNo) { EXPECT_FALSE(MayMapOwners("/proc")); }

}  // namespace
}  // namespace bulkhead::launcher
