// Certificates are made, signed, read and verified.
#include "pki/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster::pki {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Certificates : public ::testing::Test {
 protected:
  static absl::Time At(int hours) {
    return absl::FromUnixSeconds(1'800'000'000) + absl::Hours(hours);
  }

  // Makes a cluster's certificate with its key.
  static Identity Cluster(const Identity& by, const std::string& name) {
    const std::string key = MakeKey();
    auto certificate = SignRequest(by, MakeRequest(key).value(), name, {At(0), At(24)});
    EXPECT_TRUE(certificate.ok()) << certificate.status();
    return {key, certificate.value_or("")};
  }

  std::string Server(const std::vector<std::string>& names) {
    auto certificate = MakeServerCertificate(ca_, server_key_, names, {At(0), At(24)});
    EXPECT_TRUE(certificate.ok()) << certificate.status();
    return certificate.value_or("");
  }

  const Identity ca_ = MakeCa("broker", {At(-1), At(1000)});
  const Identity other_ = MakeCa("broker", {At(-1), At(1000)});
  const std::string server_key_ = MakeKey();
};

TEST_F(Certificates, VerifyToTheirCa) {
  const Identity lab = Cluster(ca_, "lab");
  EXPECT_TRUE(CheckPair(lab).ok());
  EXPECT_TRUE(Verify(lab.certificate, ca_.certificate, Purpose::kClient, At(1)).ok());
  const std::string server = Server({"broker.example.org", "192.0.2.7", "2001:db8::1"});
  EXPECT_TRUE(CheckPair({server_key_, server}).ok());
  for (const char* host : {"broker.example.org", "192.0.2.7", "2001:db8::1"}) {
    EXPECT_TRUE(Verify(server, ca_.certificate, Purpose::kServer, At(1), host).ok()) << host;
  }
}

TEST_F(Certificates, NameOneCluster) {
  const Identity lab = Cluster(ca_, "lab");
  const auto read = ReadCertificate(lab.certificate);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->cluster, "lab");
  EXPECT_EQ(read->common_name, "lab");
  EXPECT_EQ(read->validity.from, At(0));
  EXPECT_EQ(read->validity.until, At(24));
  EXPECT_FALSE(read->is_self_signed);
  EXPECT_NE(read->serial, ReadCertificate(Cluster(ca_, "lab").certificate)->serial);
  EXPECT_EQ(ReadCertificate(Server({"lab"}))->cluster, "");
}

TEST_F(Certificates, ArePinnedByAFingerprint) {
  const auto read = ReadCertificate(ca_.certificate);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->fingerprint.size(), 64);
  EXPECT_TRUE(read->is_self_signed);
  EXPECT_NE(read->fingerprint, ReadCertificate(other_.certificate)->fingerprint);
  const auto chain = SplitCertificates(Server({"broker"}));
  ASSERT_TRUE(chain.ok());
  ASSERT_EQ(chain->size(), 2);
  EXPECT_EQ(ReadCertificate(chain->back())->fingerprint, read->fingerprint);
}

TEST_F(Certificates, OfAnotherCaAreRefused) {
  const absl::Status status =
      Verify(Cluster(other_, "lab").certificate, ca_.certificate, Purpose::kClient, At(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not signed by the CA that is trusted"));
}

TEST_F(Certificates, OfAnotherTimeAreRefused) {
  const Identity lab = Cluster(ca_, "lab");
  const absl::Status late = Verify(lab.certificate, ca_.certificate, Purpose::kClient, At(25));
  EXPECT_EQ(late.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("the certificate has expired on 2027-01-16 08:00:00 UTC"));
  const absl::Status early = Verify(lab.certificate, ca_.certificate, Purpose::kClient, At(-1));
  EXPECT_THAT(std::string(early.message()), HasSubstr("valid only from"));
  const absl::Status ca = Verify(lab.certificate, ca_.certificate, Purpose::kClient, At(2000));
  EXPECT_FALSE(ca.ok());
}

TEST_F(Certificates, OfAnotherNameAreRefused) {
  const std::string server = Server({"broker.example.org", "192.0.2.7"});
  for (const char* host : {"other.example.org", "192.0.2.8", "org"}) {
    const absl::Status status = Verify(server, ca_.certificate, Purpose::kServer, At(1), host);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
    EXPECT_THAT(std::string(status.message()), HasSubstr("does not name \"" + std::string(host)));
  }
}

TEST_F(Certificates, ServeOnePurpose) {
  const absl::Status server = Verify(Server({"broker"}), ca_.certificate, Purpose::kClient, At(1));
  EXPECT_THAT(std::string(server.message()), HasSubstr("another purpose"));
  EXPECT_FALSE(
      Verify(Cluster(ca_, "lab").certificate, ca_.certificate, Purpose::kServer, At(1)).ok());
}

TEST_F(Certificates, OfAClusterSignNoOthers) {
  const Identity lab = Cluster(ca_, "lab");
  const Identity forged = Cluster(lab, "other");
  EXPECT_FALSE(
      Verify(forged.certificate + lab.certificate, ca_.certificate, Purpose::kClient, At(1)).ok());
}

TEST_F(Certificates, LiveNoLongerThanTheirCa) {
  const Identity ca = MakeCa("short", {At(0), At(2)});
  EXPECT_EQ(ReadCertificate(Cluster(ca, "lab").certificate)->validity.until, At(2));
}

TEST_F(Certificates, NeedNamesThatCanBe) {
  for (const char* name : {"", "a b", "a,DNS:b", "https://a", "a:1"}) {
    const auto made = MakeServerCertificate(ca_, server_key_, {name}, {At(0), At(24)});
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_FALSE(SignRequest(ca_, MakeRequest(MakeKey()).value(), "a,URI:b", {At(0), At(1)}).ok());
}

TEST_F(Certificates, TellTheirNames) {
  const auto names = ServerNames(Server({"broker.example.org", "192.0.2.7", "2001:db8::1"}));
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("broker.example.org", "192.0.2.7", "2001:db8::1"));
}

TEST_F(Certificates, AreNotMadeForForeignRequests) {
  const std::string request = MakeRequest(MakeKey()).value();
  // A byte of the signature, which is at the end.
  std::string forged = request;
  const size_t at = forged.find("\n-----END") - 8;
  forged[at] = forged[at] == 'A' ? 'B' : 'A';
  const auto refused = SignRequest(ca_, forged, "lab", {At(0), At(24)});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& text : {std::string(), std::string("nonsense"), request.substr(0, 100)}) {
    const auto bad = SignRequest(ca_, text, "lab", {At(0), At(24)});
    EXPECT_THAT(std::string(bad.status().message()), HasSubstr("no whole certificate request"));
  }
}

TEST_F(Certificates, AreReadOnlyWhenWhole) {
  const std::string whole = Server({"broker"});
  for (const std::string& half : {std::string(), std::string("nonsense"), whole.substr(0, 200)}) {
    EXPECT_THAT(std::string(ReadCertificate(half).status().message()),
                HasSubstr("holds no whole certificate"));
  }
  EXPECT_THAT(
      std::string(SplitCertificates(whole.substr(0, whole.size() - 100)).status().message()),
      HasSubstr("not whole"));
  EXPECT_THAT(std::string(CheckPair({server_key_.substr(0, 80), whole}).message()),
              HasSubstr("the key holds no whole private key"));
  EXPECT_THAT(std::string(CheckPair({MakeKey(), whole}).message()), HasSubstr("does not belong"));
  EXPECT_EQ(Verify(whole.substr(0, 200), ca_.certificate, Purpose::kServer, At(1)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Verify(whole, "nonsense", Purpose::kServer, At(1)).message()),
              HasSubstr("the CA's file holds no whole certificate"));
}

}  // namespace
}  // namespace muster::pki
