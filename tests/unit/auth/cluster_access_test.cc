// Clusters are invited, enrolled, renewed and revoked.
#include "broker/auth/cluster_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>

#include "contract/errors.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"
#include "pki/join_token.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

class ClusterAccessTest : public ::testing::Test {
 protected:
  ClusterAccessTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    EXPECT_TRUE(ca_.Init({"localhost", "127.0.0.1"}, now_).ok());
    Restart();
  }

  void Restart() {
    access_.reset();
    ClusterAccess::Options options;
    options.files = files_;
    options.database = directory_ / "auth.db";
    options.now = [this] { return now_; };
    auto access = ClusterAccess::Open(options);
    ASSERT_TRUE(access.ok()) << access.status();
    access_ = *std::move(access);
  }

  static std::string Request() { return pki::MakeRequest(pki::MakeKey()).value(); }
  static std::string ReasonOf(const absl::Status& status) {
    const auto info = contract::GetErrorInfo(status);
    return info ? info->reason() : "";
  }

  std::string Certificate(const std::string& cluster) {
    const auto invited = access_->Invite(cluster);
    EXPECT_TRUE(invited.ok()) << invited.status();
    const auto enrolled = access_->Enroll(invited->token, Request());
    EXPECT_TRUE(enrolled.ok()) << enrolled.status();
    return enrolled->certificate;
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  const CaDirectory ca_{directory_ / "ca"};
  IdentityFiles files_ = {.ca_directory = directory_ / "ca"};
  std::unique_ptr<ClusterAccess> access_;
};

TEST_F(ClusterAccessTest, GivesAnInvitedAgentACertificateForItsCluster) {
  const auto invited = access_->Invite("lab");
  ASSERT_TRUE(invited.ok());
  EXPECT_EQ(invited->until, now_ + absl::Hours(1));
  const std::string ca = ReadFile(ca_.certificate(), 1 << 20).value();
  EXPECT_EQ(pki::FingerprintIn(invited->token).value(), pki::ReadCertificate(ca)->fingerprint);
  const auto enrolled = access_->Enroll(invited->token, Request());
  ASSERT_TRUE(enrolled.ok()) << enrolled.status();
  EXPECT_EQ(enrolled->cluster, "lab");
  const auto peer = access_->Check(enrolled->certificate);
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->cluster, "lab");
  EXPECT_EQ(peer->until, now_ + absl::Hours(24));
  EXPECT_EQ(peer->from, now_ - pki::kClockSkew);
}

TEST_F(ClusterAccessTest, TakesATokenOnce) {
  const auto invited = access_->Invite("lab");
  // A request that cannot be signed does not use the token up.
  const auto bad = access_->Enroll(invited->token, "nonsense");
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(access_->Enroll(invited->token, Request()).ok());
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    const auto again = access_->Enroll(invited->token, Request());
    EXPECT_EQ(again.status().code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(ReasonOf(again.status()), "INVITE_USED");
  }
}

TEST_F(ClusterAccessTest, TakesATokenForAnHourOnly) {
  const auto invited = access_->Invite("lab");
  now_ += absl::Hours(1);
  EXPECT_EQ(ReasonOf(access_->Enroll(invited->token, Request()).status()), "INVITE_EXPIRED");
}

TEST_F(ClusterAccessTest, KnowsItsOwnTokensOnly) {
  const std::string foreign = pki::MakeJoinToken(std::string(64, 'a'));
  EXPECT_EQ(ReasonOf(access_->Enroll(foreign, Request()).status()), "INVITE_UNKNOWN");
  EXPECT_EQ(ReasonOf(access_->Enroll("", Request()).status()), "INVITE_UNKNOWN");
}

TEST_F(ClusterAccessTest, KeepsNoTokenOnDisk) {
  const auto invited = access_->Invite("lab");
  access_.reset();
  for (const auto& file : std::filesystem::directory_iterator(directory_)) {
    if (!file.is_regular_file()) continue;
    const std::string bytes = ReadFile(file.path(), 10 << 20).value();
    EXPECT_EQ(bytes.find(invited->token.substr(12, 32)), std::string::npos) << file.path();
    struct stat info {};
    ASSERT_EQ(stat(file.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077, 0) << file.path();
  }
}

TEST_F(ClusterAccessTest, RenewsForTheSameCluster) {
  const auto peer = access_->Check(Certificate("lab"));
  ASSERT_TRUE(peer.ok());
  now_ += absl::Hours(20);
  const auto renewed = access_->Renew(*peer, Request());
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  now_ += absl::Hours(10);
  EXPECT_EQ(access_->Check(*renewed)->cluster, "lab");
  Restart();
  EXPECT_EQ(access_->Check(*renewed)->cluster, "lab");
  const auto late = access_->Renew(*peer, Request());
  EXPECT_EQ(ReasonOf(late.status()), "CERTIFICATE_REFUSED");
}

TEST_F(ClusterAccessTest, RefusesWhatHasExpired) {
  const std::string certificate = Certificate("lab");
  const auto peer = access_->Check(certificate);
  now_ += absl::Hours(24);
  for (const absl::Status& status :
       {access_->Check(certificate).status(), access_->CheckAgain(*peer)}) {
    EXPECT_EQ(ReasonOf(status), "CERTIFICATE_REFUSED");
    EXPECT_THAT(std::string(status.message()), HasSubstr("expired"));
  }
}

TEST_F(ClusterAccessTest, RevokesForGood) {
  const std::string certificate = Certificate("lab");
  const std::string other = Certificate("other");
  const auto peer = access_->Check(certificate);
  const auto open = access_->Invite("lab");
  const auto revoked = access_->Revoke("lab");
  ASSERT_TRUE(revoked.ok());
  EXPECT_EQ(revoked->certificates, 1);
  EXPECT_EQ(revoked->invitations, 1);
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    EXPECT_EQ(ReasonOf(access_->Check(certificate).status()), "CERTIFICATE_REFUSED");
    EXPECT_EQ(ReasonOf(access_->CheckAgain(*peer)), "CERTIFICATE_REFUSED");
    EXPECT_EQ(ReasonOf(access_->Renew(*peer, Request()).status()), "CERTIFICATE_REFUSED");
    EXPECT_EQ(ReasonOf(access_->Enroll(open->token, Request()).status()), "INVITE_UNKNOWN");
    EXPECT_TRUE(access_->Check(other).ok());
  }
  // Another invitation lets it come back.
  EXPECT_TRUE(access_->Check(Certificate("lab")).ok());
}

TEST_F(ClusterAccessTest, RefusesCertificatesOfAnotherCa) {
  const pki::Identity other = pki::MakeCa("Muster broker CA", {now_, now_ + absl::Hours(48)});
  const std::string forged =
      pki::SignRequest(other, Request(), "lab", {now_, now_ + absl::Hours(24)}).value();
  const absl::Status status = access_->Check(forged).status();
  EXPECT_EQ(ReasonOf(status), "CERTIFICATE_REFUSED");
  EXPECT_THAT(std::string(status.message()), HasSubstr("not signed by the CA"));
  EXPECT_FALSE(access_->Check("nonsense").ok());
  EXPECT_FALSE(access_->Check("").ok());
  // The broker's own certificate is no cluster's.
  const std::string server = ReadFile(ca_.server_certificate(), 1 << 20).value();
  EXPECT_EQ(ReasonOf(access_->Check(server).status()), "CERTIFICATE_REFUSED");
}

TEST_F(ClusterAccessTest, RefusesCertificatesThatItsDatabaseDoesNotKnow) {
  const std::string certificate = Certificate("lab");
  access_.reset();
  std::filesystem::remove(directory_ / "auth.db");
  Restart();
  EXPECT_THAT(std::string(access_->Check(certificate).status().message()), HasSubstr("auth.db"));
}

TEST_F(ClusterAccessTest, TakesCertificatesOfTheSitesCaAndRevokesThemByName) {
  const pki::Identity site = pki::MakeCa("site", {now_, now_ + absl::Hours(1000)});
  files_.client_ca = directory_ / "site.pem";
  ASSERT_TRUE(WriteFileWhole(files_.client_ca, site.certificate, 0644).ok());
  Restart();
  const auto sign = [&] {
    return pki::SignRequest(site, Request(), "lab", {now_, now_ + absl::Hours(24)}).value();
  };
  const std::string certificate = sign();
  ASSERT_TRUE(access_->Check(certificate).ok());
  ASSERT_TRUE(access_->Revoke("lab").ok());
  EXPECT_FALSE(access_->Check(certificate).ok());
  Restart();
  EXPECT_FALSE(access_->Check(certificate).ok());
  now_ += absl::Minutes(1);
  EXPECT_TRUE(access_->Check(sign()).ok());
  // Another CA in the same file takes its place without a restart.
  const pki::Identity next = pki::MakeCa("next", {now_, now_ + absl::Hours(1000)});
  const std::string former = sign();
  ASSERT_TRUE(access_->Check(former).ok());
  ASSERT_TRUE(WriteFileWhole(files_.client_ca, next.certificate, 0644).ok());
  ASSERT_TRUE(access_->Housekeep().ok());
  EXPECT_FALSE(access_->Check(former).ok());
}

TEST_F(ClusterAccessTest, RenewsTheBrokersCertificateInTime) {
  const std::string first = ReadFile(ca_.server_certificate(), 1 << 20).value();
  now_ += absl::Hours(24 * 59);
  ASSERT_TRUE(access_->Housekeep().ok());
  EXPECT_EQ(ReadFile(ca_.server_certificate(), 1 << 20).value(), first);
  now_ += absl::Hours(48);
  ASSERT_TRUE(access_->Housekeep().ok());
  const std::string second = ReadFile(ca_.server_certificate(), 1 << 20).value();
  const std::string ca = ReadFile(ca_.certificate(), 1 << 20).value();
  EXPECT_TRUE(
      pki::Verify(second, ca, pki::Purpose::kServer, now_ + absl::Hours(24 * 60), "localhost")
          .ok());
  // After a long stop, at the start.
  now_ += absl::Hours(24 * 365);
  Restart();
}

TEST_F(ClusterAccessTest, DoesNotOpenWithoutAnIdentity) {
  const auto open = [this](const IdentityFiles& files) {
    ClusterAccess::Options options;
    options.files = files;
    options.database = directory_ / "other.db";
    options.now = [this] { return now_; };
    return ClusterAccess::Open(options).status();
  };
  const absl::Status none = open({.ca_directory = directory_ / "none"});
  EXPECT_EQ(ReasonOf(none), "NO_IDENTITY");
  EXPECT_THAT(std::string(none.message()), HasSubstr("muster-broker init"));
  const absl::Status half =
      open({.ca_directory = directory_ / "none", .certificate = ca_.server_certificate()});
  EXPECT_THAT(std::string(half.message()), HasSubstr("go together"));
  const absl::Status wrong = open({.ca_directory = directory_ / "none",
                                   .certificate = ca_.server_certificate(),
                                   .key = ca_.key()});
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("does not belong"));
  now_ += absl::Hours(24 * 100);
  const absl::Status expired = open({.ca_directory = directory_ / "none",
                                     .certificate = ca_.server_certificate(),
                                     .key = ca_.server_key()});
  EXPECT_THAT(std::string(expired.message()), HasSubstr("has expired"));
}

TEST_F(ClusterAccessTest, SaysWhichPartOfTheCaIsDamaged) {
  ASSERT_TRUE(WriteFileWhole(ca_.key(), "-----BEGIN PRIVATE KEY-----\nMIG", 0600).ok());
  ClusterAccess::Options options;
  options.files = files_;
  options.database = directory_ / "other.db";
  options.now = [this] { return now_; };
  const absl::Status status = ClusterAccess::Open(options).status();
  EXPECT_EQ(ReasonOf(status), "CA_DAMAGED");
  EXPECT_THAT(std::string(status.message()), HasSubstr("no whole private key"));
}

TEST_F(ClusterAccessTest, MakesNoSecondCa) {
  const std::string before = ReadFile(ca_.key(), 1 << 20).value();
  const absl::Status status = ca_.Init({"localhost"}, now_);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadFile(ca_.key(), 1 << 20).value(), before);
  for (const std::string& key : {ca_.key(), ca_.server_key()}) {
    struct stat info {};
    ASSERT_EQ(stat(key.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600);
  }
}

TEST_F(ClusterAccessTest, BoundsOpenInvitations) {
  for (int i = 0; i < AuthDatabase::kMaxOpenInvitations; ++i) {
    ASSERT_TRUE(access_->Invite("lab").ok());
  }
  EXPECT_EQ(ReasonOf(access_->Invite("lab").status()), "TOO_MANY_INVITATIONS");
  now_ += absl::Hours(1);
  EXPECT_TRUE(access_->Invite("lab").ok());
}

}  // namespace
}  // namespace muster::broker
