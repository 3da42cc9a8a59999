#include "bulkhead/launcher/jail_layout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_fixture.h"

namespace bulkhead::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class JailLayoutTest : public testing::Test {
 protected:
  JailLayout Make() const {
    const LayoutRequest request{policy_, home_, {}, {}};
    absl::StatusOr<JailLayout> layout = MakeJailLayout(request);
    EXPECT_TRUE(layout.ok()) << layout.status();
    return layout.ok() ? *std::move(layout) : JailLayout();
  }
  static policy::PathGrant Grant(const std::string& path, const std::string& origin = "") {
    policy::PathGrant grant;
    grant.path = path;
    grant.origin = origin;
    return grant;
  }
  // "ro", "rw", "rx" or "rwx", and the path.
  std::vector<std::string> Grants(const JailLayout& layout) const {
    std::vector<std::string> words;
    for (const Granted& granted : layout.grants) {
      words.push_back(absl::StrCat(granted.access.write ? "rw" : "r", granted.access.execute ? "x " : " ",
                                   granted.path.real.substr(host_.folder().size())));
    }
    return words;
  }

  Host host_;
  policy::PolicyFields policy_;
  std::string home_;
};

TEST(PathLessTest, AFolderStandsRightBeforeWhatLiesInIt) {
  std::vector<std::string> paths = {"/a-b", "/b", "/a/b/c", "/a", "/", "/a/b", "/a/b-c", "/a b"};
  std::sort(paths.begin(), paths.end(), PathLess());
  EXPECT_THAT(paths, ElementsAre("/", "/a", "/a/b", "/a/b/c", "/a/b-c", "/a b", "/a-b", "/b"));
  EXPECT_FALSE(PathLess()("/a", "/a"));
}

TEST_F(JailLayoutTest, WithoutGrantsOnlyPrivateFoldersAreThere) {
  const JailLayout layout = Make();
  EXPECT_THAT(layout.grants, IsEmpty());
  EXPECT_FALSE(layout.IsVisible(host_.folder()));
  EXPECT_TRUE(layout.IsVisible("/tmp"));
}

TEST_F(JailLayoutTest, RightsOnOnePathAdd) {
  host_.Folder("data");
  policy_.filesystem.ro = policy_.filesystem.rw = policy_.filesystem.rx = {Grant(host_ / "data")};
  EXPECT_THAT(Grants(Make()), ElementsAre("rwx /data"));
}

TEST_F(JailLayoutTest, TwoNamesOfOneFolderAreOneGrant) {
  host_.Folder("data");
  policy_.filesystem.ro = {Grant(host_ / "data")};
  policy_.filesystem.rw = {Grant(host_.Link("data", "link"))};
  const JailLayout layout = Make();
  EXPECT_THAT(Grants(layout), ElementsAre("rw /data"));
  ASSERT_EQ(layout.links.size(), 1u);
  EXPECT_EQ(layout.links[0].at, host_ / "link");
}

TEST_F(JailLayoutTest, WhatAGrantAboveGivesAlreadyIsLeftOut) {
  host_.Folder("a/b/c");
  policy_.filesystem.ro = {Grant(host_ / "a/b/c"), Grant(host_ / "a")};
  policy_.filesystem.rw = {Grant(host_ / "a/b")};
  EXPECT_THAT(Grants(Make()), ElementsAre("r /a", "rw /a/b"));
}

TEST_F(JailLayoutTest, RightsOfAFolderHoldInAllOfIt) {
  host_.Folder("a/b");
  policy_.filesystem.rw = {Grant(host_ / "a")};
  policy_.filesystem.rx = {Grant(host_ / "a/b")};
  EXPECT_THAT(Grants(Make()), ElementsAre("rw /a", "rwx /a/b"));
}

TEST_F(JailLayoutTest, APrivateFolderCoversTheGrantAroundIt) {
  home_ = host_.home();
  host_.Folder("home/project");
  policy_.filesystem.ro = {Grant(host_.folder()), Grant(host_ / "home/project")};
  const JailLayout layout = Make();
  EXPECT_THAT(Grants(layout), ElementsAre("r ", "r /home/project")) << "the inner one is mounted again";
  EXPECT_EQ(layout.home, host_.home());
  EXPECT_EQ(layout.GrantFor(host_.key()), nullptr);
  EXPECT_NE(layout.GrantFor(host_ / "home/project/file"), nullptr);
  EXPECT_NE(layout.GrantFor(host_.folder()), nullptr);
}

TEST_F(JailLayoutTest, AHomeThatIsGrantedIsNotPrivateAndThatIsSaid) {
  home_ = host_.home();
  policy_.filesystem.ro = {Grant(home_, "files.json:7")};
  const JailLayout layout = Make();
  EXPECT_EQ(layout.home, "");
  EXPECT_THAT(layout.warnings, ElementsAre(testing::HasSubstr("files.json:7")));
}

TEST_F(JailLayoutTest, LinksInsideAGrantAreNotMadeAgain) {
  host_.Folder("data/real");
  host_.Link("real", "data/link");
  policy_.filesystem.ro = {Grant(host_ / "data"), Grant(host_ / "data/link")};
  const JailLayout layout = Make();
  EXPECT_THAT(layout.links, IsEmpty());
  EXPECT_THAT(Grants(layout), ElementsAre("r /data"));
}

TEST_F(JailLayoutTest, OnlyAnOptionalGrantMayBeMissing) {
  policy_.filesystem.ro = {Grant(host_ / "none")};
  const LayoutRequest request{policy_, "", {}, {}};
  EXPECT_TRUE(absl::IsPermissionDenied(MakeJailLayout(request).status()));
  policy_.filesystem.ro[0].optional = true;
  EXPECT_THAT(Make().grants, IsEmpty());
}

TEST_F(JailLayoutTest, EveryCeilingsFolderBoundsAGrant) {
  host_.Folder("outer/inner");
  host_.Folder("elsewhere");
  host_.Link("../../elsewhere", "outer/inner/link");
  policy::PathGrant grant = Grant(host_ / "outer/inner/link");
  policy_.filesystem.ro = {grant};
  EXPECT_THAT(Grants(Make()), ElementsAre("r /elsewhere"));
  policy_.filesystem.ro[0].also_beneath = {host_.folder()};
  EXPECT_THAT(Grants(Make()), ElementsAre("r /elsewhere"));
  policy_.filesystem.ro[0].also_beneath = {host_.folder(), host_ / "outer"};
  const LayoutRequest request{policy_, "", {}, {}};
  EXPECT_TRUE(absl::IsPermissionDenied(MakeJailLayout(request).status()));
}

TEST_F(JailLayoutTest, TheRuntimeHoldsNoAccounts) {
  policy_.filesystem.rx = {Grant(":runtime")};
  const JailLayout layout = Make();
  EXPECT_TRUE(layout.IsVisible("/usr/bin"));
  for (const char* path : {"/etc", "/etc/passwd", "/etc/shadow", "/etc/hosts", "/etc/hostname", "/root", "/home"}) {
    EXPECT_FALSE(layout.IsVisible(path)) << path;
  }
}

}  // namespace
}  // namespace bulkhead::launcher
