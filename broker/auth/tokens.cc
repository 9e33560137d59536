#include "broker/auth/tokens.h"

#include <fmt/format.h>

#include <set>

#include "broker/auth/refusals.h"
#include "broker/auth/token_file.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "digest/sha256.h"
#include "digest/token_text.h"

namespace muster::auth {
namespace {

std::string DigestOf(std::string_view text) {
  Sha256 digest;
  digest.Add(text);
  return digest.FinishBytes();
}

absl::Status TooMany(std::string_view whose, size_t most) {
  return contract::Error(
      absl::StatusCode::kResourceExhausted, "TOO_MANY_TOKENS",
      fmt::format("{} {} tokens that have not ended, the most there may be; revoke some", whose,
                  most));
}

absl::Status NoSuchToken(uint64_t id) {
  return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_TOKEN",
                         fmt::format("there is no token {}", id));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokens>> Tokens::Open(const std::string& path,
                                                     std::function<absl::Time()> now) {
  auto file = TokenFile::Open(path);
  if (!file.ok()) return file.status();
  auto records = (*file)->Load();
  if (!records.ok()) return records.status();
  auto tokens = std::unique_ptr<Tokens>(new Tokens(*std::move(file), std::move(now)));
  const MutexLock lock(tokens->mutex_);
  for (TokenRecord& record : *records) {
    tokens->Add(std::make_shared<Token>(std::move(record)));
  }
  return tokens;
}

Tokens::Tokens(std::unique_ptr<TokenFile> file, std::function<absl::Time()> now)
    : now_(std::move(now)), file_(std::move(file)) {}

Tokens::~Tokens() = default;

void Tokens::Add(const std::shared_ptr<Token>& token) {
  by_id_[token->record().id] = token;
  by_digest_[token->record().digest] = token;
}

FoundToken Tokens::Find(std::string_view text) const {
  const std::string digest = DigestOf(text);
  std::shared_ptr<Token> token;
  {
    const MutexLock lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found == by_digest_.end()) return {};
    token = found->second;
  }
  const absl::Time now = now_();
  if (token->is_revoked()) return {Standing::kRevoked, token};
  if (!token->IsLive(now)) return {Standing::kExpired, token};
  token->Use(absl::ToUnixMicros(now));
  return {Standing::kLive, token};
}

std::vector<std::shared_ptr<const Token>> Tokens::List() const {
  std::vector<std::shared_ptr<const Token>> all;
  const MutexLock lock(mutex_);
  all.reserve(by_id_.size());
  for (const auto& [_, token] : by_id_) all.push_back(token);
  return all;
}

absl::StatusOr<std::vector<uint64_t>> Tokens::MakeRoom(const NewToken& asked,
                                                       absl::Time now) const {
  size_t of_user = 0;
  std::vector<uint64_t> ended;          // the oldest first
  std::vector<uint64_t> ended_of_user;  // likewise
  // The maker may have ended since its call was let in; a child would outlive its revocation.
  const auto maker = by_id_.find(asked.maker);
  const bool is_orphan = maker == by_id_.end() || !maker->second->IsLive(now);
  if (asked.maker != 0 && is_orphan) return NotAccepted();
  for (const auto& [id, token] : by_id_) {
    const bool is_users = token->record().user == asked.user;
    const bool is_live = token->IsLive(now);
    if (is_users) ++of_user;
    if (!is_live) ended.push_back(id);
    if (is_users && !is_live) ended_of_user.push_back(id);
    if (is_users && is_live && token->record().name == asked.name) {
      return contract::Error(
          absl::StatusCode::kAlreadyExists, "TOKEN_EXISTS",
          fmt::format("{} has a token named {}, number {}; choose another name, or revoke that one",
                      asked.user, contract::Quoted(asked.name), id));
    }
  }
  if (of_user >= kMaxTokensOfUser) {
    if (ended_of_user.empty()) return TooMany(asked.user + " has", kMaxTokensOfUser);
    return std::vector<uint64_t>{ended_of_user.front()};
  }
  if (by_id_.size() < kMaxTokens) return std::vector<uint64_t>();
  if (ended.empty()) return TooMany("the broker has", kMaxTokens);
  return std::vector<uint64_t>{ended.front()};
}

absl::StatusOr<MadeToken> Tokens::Create(const NewToken& asked) {
  MadeToken made;
  made.text = NewTokenText();
  if (made.text.empty()) return absl::InternalError("the system has no random bytes");
  const MutexLock file_lock(file_mutex_);
  const absl::Time now = now_();
  absl::StatusOr<std::vector<uint64_t>> gone;
  {
    const MutexLock lock(mutex_);
    gone = MakeRoom(asked, now);
  }
  if (!gone.ok()) return gone.status();
  TokenRecord record{.digest = DigestOf(made.text),
                     .name = asked.name,
                     .user = asked.user,
                     .role = asked.role,
                     .maker = asked.maker,
                     .created_micros = absl::ToUnixMicros(now),
                     .expires_micros = absl::ToUnixMicros(now + asked.lifetime)};
  const absl::StatusOr<uint64_t> id = file_->Replace(*gone, record);
  if (!id.ok()) return id.status();
  record.id = *id;
  const auto token = std::make_shared<Token>(std::move(record));
  made.token = token;
  const MutexLock lock(mutex_);
  for (const uint64_t old : *gone) {
    const auto found = by_id_.find(old);
    by_digest_.erase(found->second->record().digest);
    by_id_.erase(found);
    written_uses_.erase(old);
  }
  Add(token);
  return made;
}

absl::StatusOr<std::vector<std::shared_ptr<const Token>>> Tokens::Revoke(uint64_t id) {
  const MutexLock file_lock(file_mutex_);
  std::vector<std::shared_ptr<Token>> ending;
  {
    const MutexLock lock(mutex_);
    if (!by_id_.contains(id)) return NoSuchToken(id);
    // A token is younger than its maker, and the ids are in the order of their making.
    std::set<uint64_t> family = {id};
    for (const auto& [other, token] : by_id_) {
      if (family.contains(token->record().maker)) family.insert(other);
      if (family.contains(other) && !token->is_revoked()) ending.push_back(token);
    }
  }
  std::vector<uint64_t> ids;
  for (const auto& token : ending) ids.push_back(token->record().id);
  const int64_t micros = absl::ToUnixMicros(now_());
  if (absl::Status status = file_->Revoke(ids, micros); !status.ok()) return status;
  for (const auto& token : ending) token->Revoke(micros);
  return std::vector<std::shared_ptr<const Token>>(ending.begin(), ending.end());
}

absl::Status Tokens::WriteUses() {
  const MutexLock file_lock(file_mutex_);
  std::vector<std::pair<uint64_t, int64_t>> uses;
  for (const auto& token : List()) {
    const int64_t micros = token->used_micros();
    const uint64_t id = token->record().id;
    const auto written = written_uses_.find(id);
    const int64_t known =
        written == written_uses_.end() ? token->record().used_micros : written->second;
    if (micros != known) uses.emplace_back(id, micros);
  }
  if (uses.empty()) return absl::OkStatus();
  if (absl::Status status = file_->NoteUses(uses); !status.ok()) return status;
  for (const auto& [id, micros] : uses) written_uses_[id] = micros;
  return absl::OkStatus();
}

}  // namespace muster::auth
