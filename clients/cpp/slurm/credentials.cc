#include "clients/cpp/slurm/credentials.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "contract/parts.h"
#include "contract/text.h"

namespace muster::client::slurm {
namespace {

// Words between two '_' of a name.
constexpr std::array<std::string_view, 14> kWords = {
    "AUTH", "BEARER", "COOKIE", "CREDENTIAL", "CREDENTIALS", "CREDS",   "JWT",
    "KEY",  "KEYS",   "PASS",   "SIGNATURE",  "SSHPASS",     "PRIVKEY", "PAT"};
// Beginnings and ends of words are often written together with others: GITHUBTOKEN, dbPassword.
constexpr std::array<std::string_view, 5> kParts = {"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE",
                                                    "APIKEY"};
constexpr std::array<std::string_view, 4> kEnds = {"TOKEN", "TOKENS", "ACCESSKEY", "PRIVATEKEY"};

bool IsSecretWord(std::string_view word) {
  const auto is_within = [&](std::string_view part) { return word.find(part) != word.npos; };
  const auto is_end = [&](std::string_view end) { return word.ends_with(end); };
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end() ||
         std::any_of(kParts.begin(), kParts.end(), is_within) ||
         std::any_of(kEnds.begin(), kEnds.end(), is_end);
}

// Recognises "scheme://user:password@host".
bool HasUrlWithPassword(std::string_view value) {
  for (size_t at = value.find("://"); at != value.npos; at = value.find("://", at)) {
    at += 3;
    const std::string_view place = value.substr(at, value.find_first_of("/ \t\n", at) - at);
    const size_t host = place.rfind('@');
    if (host == place.npos) continue;
    const size_t colon = place.find(':');
    if (colon < host && colon + 1 < host) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> DefaultLeaveBehind() {
  return {"DBUS_SESSION_BUS_ADDRESS",
          "GPG_AGENT_INFO",
          "KRB5CCNAME",
          "SSH_AGENT_PID",
          "SSH_AUTH_SOCK",
          "XAUTHORITY"};
}

bool IsListed(std::string_view name, const std::vector<std::string>& list) {
  return std::any_of(list.begin(), list.end(), [&](std::string_view one) {
    return one.ends_with('*') ? name.starts_with(one.substr(0, one.size() - 1)) : name == one;
  });
}

bool LooksLikeCredential(std::string_view name, std::string_view value) {
  const std::string upper = absl::AsciiStrToUpper(ToAbsl(name));
  const std::vector<std::string_view> words = contract::Split(upper, '_');
  if (std::any_of(words.begin(), words.end(), IsSecretWord)) return true;
  // MYSQL_PWD is a password, INIT_PWD a directory.
  if (upper.ends_with("_PWD") && !value.empty() && !value.starts_with('/')) return true;
  return HasUrlWithPassword(value) || value.find("PRIVATE KEY-----") != value.npos;
}

}  // namespace muster::client::slurm
