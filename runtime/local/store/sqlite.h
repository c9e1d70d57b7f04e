// The calls of SQLite that the store needs, with errors in words. Not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fettle::local {

class Sqlite {
 public:
  using Value = std::variant<std::int64_t, std::string>;
  using Row = std::vector<Value>;

  // Opens the file, and makes it if `writable`. Errors say which file and what can be done.
  static Result<std::unique_ptr<Sqlite>> open(const std::string& path, bool writable);
  ~Sqlite();
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  // Runs one statement with `values` bound to its parameters; `visit` sees each row. Statements are
  // prepared once and kept: `sql` must be a literal or live as long as this object.
  Status run(const char* sql, const std::vector<Value>& values = {},
             const std::function<void(const Row&)>& visit = {});
  // Whether a write has reached the disk, with all writes before it, when it returns; otherwise
  // only the order of writes survives a loss of power. For a database in WAL mode.
  Status set_durable(bool durable);
  // Whether the last failed statement found no room on the disk.
  bool is_full() const { return is_full_; }
  // Whether the file is read without its write-ahead log, whose content is then missing. That
  // happens if a reader may not write the file's shared memory.
  bool is_frozen() const { return is_frozen_; }
  // The first column of the first row; 0 or "" without a row.
  Result<std::int64_t> number(const char* sql);
  Result<std::string> text(const char* sql);

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  struct Prepared {
    const char* sql;
    std::unique_ptr<sqlite3_stmt, Finalize> statement;
  };

  explicit Sqlite(std::string path) : path_(std::move(path)) {}
  Result<sqlite3_stmt*> prepare(const char* sql);
  int cause(int code) const;
  Error error(int code) const;

  const std::string path_;
  sqlite3* database_ = nullptr;
  std::vector<Prepared> statements_;
  bool is_full_ = false;
  bool is_frozen_ = false;
};

}  // namespace fettle::local
