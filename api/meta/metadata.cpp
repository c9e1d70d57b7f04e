#include "api/meta/metadata.h"

namespace fettle::api {

Metadata::Metadata() = default;
Metadata::Metadata(const Metadata& other) = default;
Metadata::Metadata(Metadata&& other) noexcept = default;
Metadata& Metadata::operator=(const Metadata& other) = default;
Metadata& Metadata::operator=(Metadata&& other) noexcept = default;
Metadata::~Metadata() = default;

}  // namespace fettle::api
