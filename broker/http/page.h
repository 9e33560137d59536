// Finds the files of the web page, which are part of the program. Pure.
//
// Vite names each file except the page itself by its content, so browsers may keep these files
// forever.
#ifndef MUSTER_BROKER_HTTP_PAGE_H_
#define MUSTER_BROKER_HTTP_PAGE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/http/request.h"

namespace muster::http {

struct Asset {
  std::string_view path;  // "/assets/index-CcdLmQ1k.js"; the page itself is "/"
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::string_view plain;
  std::string_view gzip;
};

// The files that clients/web is built to; none if the program was built without the page
// (MUSTER_WEB=OFF). The page itself is the first.
std::span<const Asset> BuiltAssets();

struct Page {
  std::span<const Asset> assets = {};
  std::string headers = {};  // lines of the head of the page itself: its policy
};

// The page that was built. Beside the broker, its scripts may call the origins of these identity
// providers, at which people log in.
Page PageFor(std::span<const Asset> assets, const std::vector<std::string>& issuers);

// Returns null if there is no such file. Each address of the page (/jobs/42) returns the page
// itself.
const Asset* FindAsset(std::span<const Asset> assets, std::string_view path);

struct AssetAnswer {
  int http_status = 200;
  std::string_view content_type = {};
  std::string_view cache = {};  // Cache-Control
  std::string headers = {};     // more lines of the head
  std::string_view body = {};
};

// `page_headers` are those of Page.
AssetAnswer AnswerOf(const Asset& asset, const Head& head, std::string_view page_headers);

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_PAGE_H_
