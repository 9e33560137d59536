// SHA-256, by which files are named.
#ifndef MUSTER_PROTO_DIGEST_SHA256_H_
#define MUSTER_PROTO_DIGEST_SHA256_H_

#include <memory>
#include <string>
#include <string_view>

extern "C" struct evp_md_ctx_st;

namespace muster {

// The digest of bytes that come piece by piece. One thread at a time.
class Sha256 {
 public:
  Sha256();

  void Add(std::string_view bytes);
  // Returns 64 of 0-9 and a-f. The object begins anew.
  std::string Finish();
  // Returns the same as 32 bytes.
  std::string FinishBytes();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string Sha256Of(std::string_view bytes);

}  // namespace muster

#endif  // MUSTER_PROTO_DIGEST_SHA256_H_
