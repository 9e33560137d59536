// Tests which keys a host may show, by the lines of known_hosts and by pinned keys.
#include "agents/hosts/host_keys.h"

#include "absl/strings/escaping.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::hosts {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A key as SSH writes it: its type, then bytes of its own.
std::string KeyOf(const std::string& type, const std::string& own) {
  std::string key(3, '\0');
  key += static_cast<char>(type.size());
  return key + type + own;
}

std::string Base64(const std::string& key) { return absl::Base64Escape(key); }

const std::string kKey = KeyOf("ssh-ed25519", "one");
const std::string kOther = KeyOf("ssh-ed25519", "two");

HostKeys Known(const std::string& text, const std::vector<std::string>& pinned = {}) {
  absl::StatusOr<HostKeys> keys = HostKeys::Parse(text, "/known", pinned);
  EXPECT_TRUE(keys.ok()) << keys.status();
  return *std::move(keys);
}

std::string Line(const std::string& patterns, const std::string& key = kKey) {
  return fmt::format("{} {} {} a comment\n", patterns, KeyType(key), Base64(key));
}

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

TEST(HostKeysTest, AKnownKeyOfTheHostIsGood) {
  const HostKeys keys = Known("# comment\n\n" + Line("login1,login2") + Line("[login3]:2222"));
  EXPECT_TRUE(keys.Check({"login1", 22}, kKey).ok());
  EXPECT_TRUE(keys.Check({"LOGIN2", 22}, kKey).ok());
  EXPECT_TRUE(keys.Check({"login3", 2222}, kKey).ok());
  EXPECT_FALSE(keys.Check({"login1", 2222}, kKey).ok());
  EXPECT_FALSE(keys.Check({"login3", 22}, kKey).ok());
  EXPECT_FALSE(keys.Check({"login4", 22}, kKey).ok());
}

TEST(HostKeysTest, PatternsMatchAndNegationsWin) {
  const HostKeys keys = Known(Line("*.example.org,!bad.example.org") + Line("10.0.?.1"));
  EXPECT_TRUE(keys.Check({"login.example.org", 22}, kKey).ok());
  EXPECT_FALSE(keys.Check({"bad.example.org", 22}, kKey).ok());
  EXPECT_TRUE(keys.Check({"10.0.7.1", 22}, kKey).ok());
  EXPECT_FALSE(keys.Check({"10.0.77.1", 22}, kKey).ok());
}

TEST(HostKeysTest, HiddenNamesMatch) {
  // `ssh-keygen -H` made it for the name login.example.org.
  const HostKeys keys = Known(Line("|1|KRAgBMLDLgdwUYC3r9YEub3OBiQ=|4pJBCXIMyDItFp7AtOH5pIBwMmI="));
  EXPECT_TRUE(keys.Check({"login.example.org", 22}, kKey).ok());
  EXPECT_FALSE(keys.Check({"login2.example.org", 22}, kKey).ok());
}

TEST(HostKeysTest, AnotherKeyThanKnownIsAChangeWithBothFingerprints) {
  const absl::Status status = Known("\n" + Line("login")).Check({"login", 22}, kOther);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("has changed"), HasSubstr(Fingerprint(kKey)),
                                     HasSubstr(Fingerprint(kOther)), HasSubstr("/known:2")));
}

TEST(HostKeysTest, OfSeveralKnownKeysEachIsGood) {
  const HostKeys keys = Known(Line("login") + Line("login", kOther));
  EXPECT_TRUE(keys.Check({"login", 22}, kKey).ok());
  EXPECT_TRUE(keys.Check({"login", 22}, kOther).ok());
}

TEST(HostKeysTest, ARevokedKeyIsRefusedWhateverElseIsKnown) {
  const HostKeys keys =
      Known(Line("login") + "@revoked " + Line("*"), {"ssh-ed25519 " + Base64(kKey)});
  EXPECT_THAT(Message(keys.Check({"login", 22}, kKey)), HasSubstr("revoked"));
}

TEST(HostKeysTest, LinesThatCannotBeReadMakeNobodyKnown) {
  const HostKeys keys = Known("login\nlogin ssh-ed25519\nlogin ssh-ed25519 %%%\n@cert-authority " +
                              Line("*") + fmt::format("login ssh-rsa {}\n", Base64(kKey)));
  EXPECT_THAT(Message(keys.Check({"login", 22}, kKey)), HasSubstr("is not known"));
}

TEST(HostKeysTest, TheTypesOfKnownKeysAreAskedForInTheirOrder) {
  const HostKeys keys = Known(Line("a", KeyOf("ecdsa-sha2-nistp256", "x")) + Line("a") +
                              Line("a", kOther) + Line("b", KeyOf("ssh-rsa", "y")));
  EXPECT_THAT(keys.TypesFor({"a", 22}), ElementsAre("ecdsa-sha2-nistp256", "ssh-ed25519"));
}

TEST(HostKeysTest, APinThatIsNoKeyIsRefused) {
  for (const std::string pin : {"", "login", "SHA256:short", "ssh-ed25519 AAAA", "ssh-rsa"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(HostKeys::Parse("", "", {pin}).status())) << pin;
  }
  EXPECT_TRUE(Known("", {Fingerprint(kKey)}).Check({"any", 1}, kKey).ok());
  EXPECT_FALSE(Known("", {Fingerprint(kKey)}).Check({"any", 1}, kOther).ok());
}

}  // namespace
}  // namespace muster::hosts
