// The program without the web page (MUSTER_WEB=OFF).
#include "broker/http/page.h"

namespace muster::http {

std::span<const Asset> BuiltAssets() { return {}; }

}  // namespace muster::http
