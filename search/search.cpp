#include "search/search.h"

namespace fettle::search {

Problem::Problem() = default;
Problem::Problem(const Problem& other) = default;
Problem::Problem(Problem&& other) noexcept = default;
Problem& Problem::operator=(const Problem& other) = default;
Problem& Problem::operator=(Problem&& other) noexcept = default;
Problem::~Problem() = default;

}  // namespace fettle::search
