#include "broker/auth/oidc/jwt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <limits>
#include <string>
#include <vector>

#include "digest/base64url.h"
#include "signer.h"

namespace muster::oidc {
namespace {

using nlohmann::json;

constexpr int64_t kNow = 1'800'000'000;

std::string_view Name(const CheckedJwt& checked) { return NameOf(checked.fault); }

class Jwt : public testing::Test {
 protected:
  static json Claims() {
    return {{"iss", "https://id.example"}, {"aud", "muster"},  {"sub", "1"},
            {"email", "ada@example.org"},  {"iat", kNow - 10}, {"exp", kNow + 300}};
  }
  static json With(const std::string& name, const json& value) {
    json claims = Claims();
    claims[name] = value;
    return claims;
  }
  static json Without(const std::string& name) {
    json claims = Claims();
    claims.erase(name);
    return claims;
  }
  static json HeaderWith(const Signer& signer, const std::string& name, const json& value) {
    json header = json::parse(signer.Header());
    header[name] = value;
    return header;
  }

  CheckedJwt Check(const std::string& token) const {
    return CheckJwt(token, keys_, rules_, absl::FromUnixSeconds(kNow));
  }
  std::string_view FaultOf(const std::string& token) const { return Name(Check(token)); }
  std::string_view FaultOf(const json& claims) const { return FaultOf(rsa().Token(claims)); }

  // Keys take a while to make.
  static const Signer& rsa() {
    static const Signer signer(Algorithm::kRs256, "r1");
    return signer;
  }
  static const Signer& ec() {
    static const Signer signer(Algorithm::kEs256, "e1");
    return signer;
  }

  const std::vector<SigningKey> keys_ = ReadKeySet(SetOf({rsa().Jwk(), ec().Jwk()})).value();
  JwtRules rules_{"https://id.example", "muster", absl::Seconds(60)};
};

TEST_F(Jwt, TakesWhatEachOfTheTwoKindsOfKeyHasSigned) {
  for (const Signer* signer : {&rsa(), &ec()}) {
    const CheckedJwt checked = Check(signer->Token(Claims()));
    ASSERT_EQ(checked.fault, Fault::kNone) << Name(checked);
    EXPECT_EQ(checked.claims["email"], "ada@example.org");
    EXPECT_EQ(checked.expires, absl::FromUnixSeconds(kNow + 360));
  }
}

TEST_F(Jwt, RefusesEveryChangedByte) {
  const std::string good = ec().Token(Claims());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char other : {'A', 'B', '.', '=', ' ', '\0', '\xff'}) {
      if (good[at] == other) continue;
      std::string forged = good;
      forged[at] = other;
      EXPECT_NE(Check(forged).fault, Fault::kNone) << at << " " << other;
    }
    EXPECT_NE(Check(good.substr(0, at)).fault, Fault::kNone) << at;
  }
}

TEST_F(Jwt, RefusesATokenWithoutASignature) {
  for (const char* algorithm : {"none", "None", "NONE", "nOnE", ""}) {
    const std::string header = HeaderWith(rsa(), "alg", algorithm).dump();
    const std::string text =
        fmt::format("{}.{}.", ToBase64Url(header), ToBase64Url(Claims().dump()));
    EXPECT_EQ(FaultOf(text), "jwt_algorithm") << algorithm;
    EXPECT_EQ(FaultOf(rsa().Token(header, Claims().dump())), "jwt_algorithm") << algorithm;
  }
  const std::string whole = rsa().Token(Claims());
  EXPECT_EQ(FaultOf(whole.substr(0, whole.rfind('.') + 1)), "jwt_signature");
}

TEST_F(Jwt, RefusesEveryAlgorithmButTheTwo) {
  for (const json& algorithm :
       {json("HS256"), json("HS512"), json("RS384"), json("RS512"), json("PS256"), json("ES384"),
        json("ES256K"), json("EdDSA"), json("rs256"), json(256), json(nullptr), json({"RS256"})}) {
    EXPECT_EQ(FaultOf(rsa().Token(HeaderWith(rsa(), "alg", algorithm).dump(), Claims().dump())),
              "jwt_algorithm")
        << algorithm;
  }
  json header = json::parse(rsa().Header());
  header.erase("alg");
  EXPECT_EQ(FaultOf(rsa().Token(header.dump(), Claims().dump())), "jwt_algorithm");
}

// The public key is the secret of a code here: a library that lets the token choose takes it.
TEST_F(Jwt, RefusesACodeMadeWithThePublicKey) {
  for (const char* algorithm : {"HS256", "RS256", "ES256"}) {
    const std::string text =
        fmt::format("{}.{}", ToBase64Url(HeaderWith(rsa(), "alg", algorithm).dump()),
                    ToBase64Url(Claims().dump()));
    const std::string secret = rsa().Jwk().dump();
    std::string code(32, '\0');
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(code.data()), nullptr);
    EXPECT_NE(Check(text + "." + ToBase64Url(code)).fault, Fault::kNone) << algorithm;
  }
}

TEST_F(Jwt, AKeyIsUsedForItsOwnAlgorithmAlone) {
  EXPECT_EQ(FaultOf(rsa().Token(HeaderWith(rsa(), "alg", "ES256").dump(), Claims().dump())),
            "jwt_unknown_key");
  EXPECT_EQ(FaultOf(ec().Token(HeaderWith(ec(), "alg", "RS256").dump(), Claims().dump())),
            "jwt_unknown_key");
  EXPECT_EQ(FaultOf(ec().Token(rsa().Header(), Claims().dump())), "jwt_signature");
}

TEST_F(Jwt, NeverTakesAKeyFromTheToken) {
  const Signer forger(Algorithm::kEs256, "e1");
  EXPECT_EQ(FaultOf(forger.Token(Claims())), "jwt_signature");
  const json headers[] = {HeaderWith(forger, "jwk", forger.Jwk()),
                          HeaderWith(forger, "jku", "https://evil.example/keys"),
                          HeaderWith(forger, "x5u", "https://evil.example/chain"),
                          HeaderWith(forger, "x5c", {"MIIB"}),
                          HeaderWith(forger, "crit", {"exp"}),
                          HeaderWith(forger, "b64", false),
                          HeaderWith(forger, "zip", "DEF"),
                          HeaderWith(forger, "enc", "A256GCM")};
  for (const json& header : headers) {
    EXPECT_EQ(FaultOf(forger.Token(header.dump(), Claims().dump())), "jwt_header") << header;
    EXPECT_EQ(FaultOf(ec().Token(header.dump(), Claims().dump())), "jwt_header") << header;
  }
}

TEST_F(Jwt, AKeysNameIsNothingButAName) {
  for (const char* id : {"../../../dev/null", "e1\0x", "' OR 1=1", "R1", "e1 ", "/etc/passwd"}) {
    EXPECT_EQ(FaultOf(ec().Token(HeaderWith(ec(), "kid", id).dump(), Claims().dump())),
              std::string_view(id) == "e1" ? "none" : "jwt_unknown_key")
        << id;
  }
  for (const json& id :
       {json(1), json(""), json(nullptr), json({"e1"}), json(std::string(300, 'k'))})
    EXPECT_EQ(FaultOf(ec().Token(HeaderWith(ec(), "kid", id).dump(), Claims().dump())),
              "jwt_header");
  json nameless = json::parse(ec().Header());
  nameless.erase("kid");
  EXPECT_EQ(FaultOf(ec().Token(nameless.dump(), Claims().dump())), "none");
}

TEST_F(Jwt, RefusesATokenThatWasMadeForAnotherEnd) {
  for (const json& type :
       {json("logout+jwt"), json("dpop+jwt"), json("secevent+jwt"), json(""), json(1)})
    EXPECT_EQ(FaultOf(ec().Token(HeaderWith(ec(), "typ", type).dump(), Claims().dump())),
              "jwt_header");
  for (const char* type : {"JWT", "jwt", "at+jwt", "application/at+jwt"})
    EXPECT_EQ(FaultOf(ec().Token(HeaderWith(ec(), "typ", type).dump(), Claims().dump())), "none");
  EXPECT_EQ(FaultOf(With("events", {{"http://schemas.openid.net/event/backchannel-logout", {}}})),
            "jwt_claims");
}

TEST_F(Jwt, RefusesANameThatIsThereTwice) {
  const std::string twice =
      R"({"iss":"https://id.example","aud":"other","aud":"muster","exp":9999999999})";
  EXPECT_EQ(FaultOf(rsa().Token(rsa().Header(), twice)), "jwt_form");
  EXPECT_EQ(FaultOf(rsa().Token(R"({"alg":"none","alg":"RS256","kid":"r1"})", Claims().dump())),
            "jwt_form");
  // The same name in two objects is no repetition.
  json nested = Claims();
  nested["a"] = {{"x", 1}};
  nested["b"] = {{"x", 2}};
  EXPECT_EQ(FaultOf(nested), "none");
}

TEST_F(Jwt, RefusesWhatIsNoJwt) {
  const std::string good = rsa().Token(Claims());
  const std::string deep = "{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}";
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("a.b"), good + ".x",
        good + "=", " " + good, good + "\n", std::string(kMaxJwtBytes + 1, 'a'),
        "mst_" + std::string(36, 'a')}) {
    EXPECT_EQ(FaultOf(text), "jwt_form") << text.substr(0, 40);
  }
  for (const std::string& claims :
       {std::string(), std::string("null"), std::string("[]"), std::string("\"x\""),
        std::string("{"), std::string("{}x"), std::string("{'a':1}"),
        std::string("{\"a\":\"\xff\"}"), deep}) {
    EXPECT_EQ(FaultOf(rsa().Token(rsa().Header(), claims)), "jwt_form") << claims;
  }
}

TEST_F(Jwt, RefusesBase64ThatIsNotCanonical) {
  const std::string good = ec().Token(Claims());
  // 64 bytes take 86 characters, the last of which has four bits that must be zero.
  for (const char last : {'B', 'C', 'D', 'E', 'P'}) {
    std::string other = good;
    other.back() = static_cast<char>(other.back() == last ? last + 1 : last);
    if (FromBase64Url(other.substr(other.rfind('.') + 1))) continue;
    EXPECT_EQ(FaultOf(other), "jwt_form");
  }
  for (const char* text : {"YQ==", "YQ=", "YR", "Y Q", "Y\nQ", "a+b/", "Y", "YQA=", "\xc3\xa4"})
    EXPECT_FALSE(FromBase64Url(text)) << text;
  EXPECT_EQ(FromBase64Url("YQ").value(), "a");
  EXPECT_EQ(FromBase64Url("").value(), "");
}

TEST_F(Jwt, ComparesTheIssuerByteForByte) {
  for (const json& issuer :
       {json("https://id.example/"), json("https://ID.example"), json("http://id.example"),
        json("https://id.example.evil"), json({"https://id.example"}), json(nullptr)})
    EXPECT_EQ(FaultOf(With("iss", issuer)), "jwt_issuer") << issuer;
  EXPECT_EQ(FaultOf(Without("iss")), "jwt_issuer");
}

TEST_F(Jwt, TakesATokenForThisAudienceAlone) {
  for (const json& audience :
       {json("other"), json(""), json(1), json(json::array()), json({"other"}), json({"muster", 1}),
        json({{"muster", 1}}), json({"muster", "other"}), json("muster other"),
        json(std::vector<std::string>(33, "muster"))})
    EXPECT_EQ(FaultOf(With("aud", audience)), "jwt_audience") << audience;
  EXPECT_EQ(FaultOf(Without("aud")), "jwt_audience");
  EXPECT_EQ(FaultOf(With("aud", {"muster"})), "none");
  EXPECT_EQ(FaultOf(With("azp", "other")), "jwt_audience");
  json several = With("aud", {"other", "muster"});
  several["azp"] = "muster";
  EXPECT_EQ(FaultOf(several), "none");
  several["azp"] = "other";
  EXPECT_EQ(FaultOf(several), "jwt_audience");
}

TEST_F(Jwt, LetsClocksDifferByTheSkewAndNoMore) {
  EXPECT_EQ(FaultOf(With("exp", kNow - 59)), "none");
  EXPECT_EQ(FaultOf(With("exp", kNow - 60)), "jwt_expired");
  for (const char* name : {"nbf", "iat"}) {
    EXPECT_EQ(FaultOf(With(name, kNow + 60)), "none") << name;
    EXPECT_EQ(FaultOf(With(name, kNow + 61)), "jwt_not_yet") << name;
    EXPECT_EQ(FaultOf(With(name, "x")), "jwt_claims") << name;
  }
  rules_.skew = absl::ZeroDuration();
  EXPECT_EQ(FaultOf(With("exp", kNow + 1)), "none");
  EXPECT_EQ(FaultOf(With("exp", kNow)), "jwt_expired");
  EXPECT_EQ(FaultOf(With("exp", kNow + 0.5)), "none");
}

TEST_F(Jwt, NeedsAnEndThatACalendarHas) {
  EXPECT_EQ(FaultOf(Without("exp")), "jwt_claims");
  for (const json& end :
       {json("9999999999"), json(-1), json(1e300), json(253402300800), json(nullptr), json(true),
        json({kNow + 300}), json(std::numeric_limits<uint64_t>::max())})
    EXPECT_EQ(FaultOf(With("exp", end)), "jwt_claims") << end;
}

TEST_F(Jwt, TellsThatThereAreNoKeys) {
  const CheckedJwt checked =
      CheckJwt(rsa().Token(Claims()), {}, rules_, absl::FromUnixSeconds(kNow));
  EXPECT_EQ(checked.fault, Fault::kNoKeys);
}

}  // namespace
}  // namespace muster::oidc
