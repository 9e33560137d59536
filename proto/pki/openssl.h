// OpenSSL's objects, freed by themselves. For the files of this folder.
#ifndef MUSTER_PROTO_PKI_OPENSSL_H_
#define MUSTER_PROTO_PKI_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>

namespace muster::pki {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

inline void FreeStack(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, X509_free); }

using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using BigNumber = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using X509Cert = std::unique_ptr<X509, Freed<X509_free>>;
using X509Stack = std::unique_ptr<STACK_OF(X509), Freed<FreeStack>>;
using X509Request = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

}  // namespace muster::pki

#endif  // MUSTER_PROTO_PKI_OPENSSL_H_
