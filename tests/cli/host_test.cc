#include "bulkhead/cli/host.h"

#include <string>

#include "gtest/gtest.h"

namespace bulkhead::cli {
namespace {

constexpr char kPasswd[] =
    "root:x:0:0:root:/root:/bin/bash\n"
    "broken line\n"
    "short:x:7\n"
    "nohome:x:8:8:::/bin/sh\n"
    "odd:x:9:9::relative/home:/bin/sh\n"
    "ann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\n"
    "second:x:1000:1000::/home/second:/bin/sh";

TEST(HomeFromPasswdTest, TheFirstLineOfTheUserCounts) {
  EXPECT_EQ(HomeFromPasswd(kPasswd, 0), "/root");
  EXPECT_EQ(HomeFromPasswd(kPasswd, 1000), "/home/ann");
}

TEST(HomeFromPasswdTest, WhoIsNotThereOrHasNoAbsoluteHomeHasNone) {
  EXPECT_EQ(HomeFromPasswd(kPasswd, 1), std::nullopt);
  EXPECT_EQ(HomeFromPasswd(kPasswd, 7), std::nullopt);
  EXPECT_EQ(HomeFromPasswd(kPasswd, 8), std::nullopt);
  EXPECT_EQ(HomeFromPasswd(kPasswd, 9), std::nullopt);
  EXPECT_EQ(HomeFromPasswd("", 0), std::nullopt);
}

TEST(WorkspaceTest, AFolderOfOnesOwnMayBeOne) {
  Host host;
  host.home = host.home_on_disk = "/home/ann";
  EXPECT_TRUE(IsWorkspace("/home/ann/project", host));
  EXPECT_TRUE(IsWorkspace("/srv", host));
  EXPECT_TRUE(IsWorkspace("/home/an", host));
  EXPECT_TRUE(IsWorkspace("/home/anna", host));
}

TEST(WorkspaceTest, TheRootTheHomeAndWhatIsAboveItMayNot) {
  Host host;
  host.home = host.home_on_disk = "/home/ann";
  EXPECT_FALSE(IsWorkspace("/", host));
  EXPECT_FALSE(IsWorkspace("/home", host));
  EXPECT_FALSE(IsWorkspace("/home/ann", host));
  EXPECT_FALSE(IsWorkspace("", host));
}

TEST(WorkspaceTest, AHomeBehindALinkCountsByBothNames) {
  Host host;
  host.home = "/home/ann";
  host.home_on_disk = "/data/users/ann";
  EXPECT_FALSE(IsWorkspace("/home/ann", host));
  EXPECT_FALSE(IsWorkspace("/data/users/ann", host));
  EXPECT_FALSE(IsWorkspace("/data", host));
  EXPECT_TRUE(IsWorkspace("/data/users/ann/project", host));
}

TEST(WorkspaceTest, WithoutAHomeOnlyTheRootMayNot) {
  EXPECT_TRUE(IsWorkspace("/srv", Host()));
  EXPECT_FALSE(IsWorkspace("/", Host()));
}

}  // namespace
}  // namespace bulkhead::cli
