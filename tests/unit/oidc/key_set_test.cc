#include "broker/auth/oidc/key_set.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "signer.h"

namespace muster::oidc {
namespace {

using nlohmann::json;

size_t CountIn(const json& key) { return ReadKeySet(SetOf({key})).value().size(); }

json With(json key, const char* name, const json& value) {
  key[name] = value;
  return key;
}

TEST(KeySet, LeavesOutKeysForOtherEnds) {
  const json good = Signer(Algorithm::kEs256).Jwk();
  EXPECT_EQ(CountIn(good), 1u);
  EXPECT_EQ(CountIn(With(good, "use", "enc")), 0u);
  EXPECT_EQ(CountIn(With(good, "alg", "ECDH-ES")), 0u);
  EXPECT_EQ(CountIn(With(good, "kty", "OKP")), 0u);
  EXPECT_EQ(CountIn(With(good, "crv", "P-384")), 0u);
  EXPECT_EQ(CountIn(With(good, "kid", 1)), 0u);
  EXPECT_EQ(CountIn(With(good, "kid", std::string(300, 'k'))), 0u);
  EXPECT_EQ(CountIn({{"kty", "oct"}, {"k", "AAAA"}}), 0u);
  EXPECT_EQ(CountIn("text"), 0u);
}

TEST(KeySet, LeavesOutWeakAndBrokenKeys) {
  EXPECT_EQ(CountIn(Signer(Algorithm::kRs256, "weak", 1024).Jwk()), 0u);
  const json rsa = Signer(Algorithm::kRs256).Jwk();
  EXPECT_EQ(CountIn(rsa), 1u);
  EXPECT_EQ(CountIn(With(rsa, "e", "AQ")), 0u);
  EXPECT_EQ(CountIn(With(rsa, "e", "AAAA")), 0u);
  EXPECT_EQ(CountIn(With(rsa, "n", std::string(4000, 'A'))), 0u);
  const json ec = Signer(Algorithm::kEs256).Jwk();
  // A point that is not on the curve.
  EXPECT_EQ(CountIn(With(ec, "y", ec["x"])), 0u);
  EXPECT_EQ(CountIn(With(ec, "x", "AAAA")), 0u);
}

TEST(KeySet, RefusesWhatIsNoSet) {
  for (const char* text : {"", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[],\"keys\":[]}", "<html>"})
    EXPECT_FALSE(ReadKeySet(text).ok()) << text;
  EXPECT_FALSE(
      ReadKeySet(json{{"keys", std::vector<json>(kMaxKeys + 1, json::object())}}.dump()).ok());
  const json one = Signer(Algorithm::kEs256).Jwk();
  EXPECT_FALSE(ReadKeySet(SetOf({one, Signer(Algorithm::kEs256).Jwk()})).ok());
}

TEST(KeySet, AKeyWithoutANameIsFoundOnlyIfThereIsNoOther) {
  const json one = Signer(Algorithm::kEs256, "a").Jwk();
  const auto single = ReadKeySet(SetOf({one})).value();
  EXPECT_NE(FindKey(single, "", Algorithm::kEs256), nullptr);
  EXPECT_EQ(FindKey(single, "", Algorithm::kRs256), nullptr);
  EXPECT_EQ(FindKey(single, "b", Algorithm::kEs256), nullptr);
  const auto pair = ReadKeySet(SetOf({one, Signer(Algorithm::kEs256, "b").Jwk()})).value();
  EXPECT_EQ(FindKey(pair, "", Algorithm::kEs256), nullptr);
  EXPECT_EQ(FindKey(pair, "b", Algorithm::kEs256)->id, "b");
}

}  // namespace
}  // namespace muster::oidc
