// Attributes by number: the vocabulary (names to numbers) and the ragged arrays of a data set.
//
// A vocabulary numbers names in order of first appearance. All names lie one after another in one arena; the table is
// open addressing with linear probing, a power of two of slots at most half full, each slot 32 bits of the hash and the
// name's number. Finding a name costs one hash, about one slot and one comparison of bytes, each of them a cache miss
// in a large vocabulary: hence the encoder collects the names of a whole token, and walks them in rounds that fetch
// ahead what the next round reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scansion {

inline void fetch_ahead(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

// 64 bits from the bytes of a name: words of eight, each mixed in by a multiplication and a fold.
inline uint64_t hash_name(std::string_view name) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u, kOther = 0xD1B54A32D192ED03u;
  const char* p = name.data();
  size_t n = name.size();
  uint64_t h = kOther ^ n, word = 0;
  const auto mix = [&] {
    h = (h ^ word) * kOdd;
    h ^= h >> 32;
  };
  for (; n >= 8; p += 8, n -= 8) {
    std::memcpy(&word, p, 8);
    mix();
  }
  if (n >= 4) {  // the last 4 to 7 bytes, as two words that may overlap
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    word = low | static_cast<uint64_t>(high) << 32;
    mix();
  } else if (n > 0) {
    word = static_cast<uint8_t>(p[0]) | static_cast<uint64_t>(static_cast<uint8_t>(p[n / 2])) << 8 |
           static_cast<uint64_t>(static_cast<uint8_t>(p[n - 1])) << 16;
    mix();
  }
  h *= kOther;
  return h ^ h >> 29;
}

// Well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
inline bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  const auto* const end = p + text.size();
  while (p < end) {
    for (uint64_t word = 0; end - p >= 8; p += 8) {  // eight at a time while all are ASCII
      std::memcpy(&word, p, 8);
      if (word & 0x8080808080808080u) break;
    }
    if (p == end) break;
    const uint8_t lead = *p++;
    if (lead < 0x80) continue;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || end - p < more) return false;
    const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (*p < low || *p > high) return false;
    for (int i = 1; i < more; ++i)
      if ((p[i] & 0xC0) != 0x80) return false;
    p += more;
  }
  return true;
}

// Appends a code point in UTF-8; not a surrogate.
template <class Text>
void append_code_point(Text& out, uint32_t c) {
  char bytes[4];
  size_t length = 0;
  if (c < 0x80) {
    bytes[length++] = static_cast<char>(c);
  } else {
    if (c >= 0x10000) bytes[length++] = static_cast<char>(0xF0 | c >> 18);
    if (c >= 0x800) bytes[length++] = static_cast<char>(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3F) : 0xE0 | c >> 12);
    bytes[length++] = static_cast<char>(c >= 0x800 ? 0x80 | (c >> 6 & 0x3F) : 0xC0 | c >> 6);
    bytes[length++] = static_cast<char>(0x80 | (c & 0x3F));
  }
  out.append(std::string_view(bytes, length));
}

class Vocabulary {
 public:
  static constexpr int32_t kUnknown = -1;

  Vocabulary() : slots_(64) {}

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  const std::vector<char>& arena() const { return arena_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }  // size() + 1

  std::string_view name(int64_t id) const {
    return {arena_.data() + offsets_[id], static_cast<size_t>(offsets_[id + 1] - offsets_[id])};
  }

  int32_t find(std::string_view name) const { return find(name, hash_name(name)); }
  int32_t find(std::string_view name, uint64_t hash) const { return slots_[probe(name, hash)].id; }

  // The name's number, a new one if it has none. `name` must not point into this vocabulary.
  int32_t intern(std::string_view name) { return intern(name, hash_name(name)); }
  int32_t intern(std::string_view name, uint64_t hash) {
    const size_t at = probe(name, hash);
    return slots_[at].id != kUnknown ? slots_[at].id : insert(at, name, hash);
  }

  // Room for so many names of so many bytes in all.
  void reserve(size_t names, size_t bytes) {
    make_room(names);
    arena_.reserve(bytes);
    offsets_.reserve(names + 1);
  }

  // What finding a name of this hash reads: the slot, then the bytes of the name likely to be found.
  void fetch_slot(uint64_t hash) const { fetch_ahead(&slots_[hash & (slots_.size() - 1)]); }
  int32_t likely(uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    const uint32_t tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & mask;; at = (at + 1) & mask)
      if (slots_[at].id == kUnknown || slots_[at].tag == tag) return slots_[at].id;
  }
  void fetch_offset(int32_t id) const { fetch_ahead(&offsets_[id]); }
  void fetch_name(int32_t id) const { fetch_ahead(arena_.data() + offsets_[id]); }

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t id = kUnknown;
  };

  // The slot that holds the name, or the empty one where it belongs.
  size_t probe(std::string_view text, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    const uint32_t tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.id == kUnknown || (slot.tag == tag && name(slot.id) == text)) return at;
    }
  }

  // A table for so many names.
  void make_room(size_t names) {
    size_t size = slots_.size();
    while (2 * (names + 2) > size) size *= 2;
    if (size > slots_.size()) rehash(size);
  }

  int32_t insert(size_t at, std::string_view text, uint64_t hash) {
    if (size() >= std::numeric_limits<int32_t>::max())
      throw std::length_error("a vocabulary holds at most 2147483647 attributes");
    if (2 * (offsets_.size() + 1) > slots_.size()) {
      grow();
      at = probe(text, hash);
    }
    const int32_t id = static_cast<int32_t>(size());
    const size_t before = arena_.size();
    arena_.insert(arena_.end(), text.begin(), text.end());
    try {
      offsets_.push_back(static_cast<int64_t>(arena_.size()));
    } catch (...) {
      arena_.resize(before);
      throw;
    }
    slots_[at] = {static_cast<uint32_t>(hash >> 32), id};
    return id;
  }

  // Only the tag is kept, so names are hashed again: once for every doubling.
  void grow() { rehash(2 * slots_.size()); }
  void rehash(size_t slots) {
    std::vector<Slot> wider(slots);
    const size_t mask = wider.size() - 1;
    for (int64_t id = 0; id < size(); ++id) {
      const uint64_t hash = hash_name(name(id));
      size_t at = hash & mask;
      while (wider[at].id != kUnknown) at = (at + 1) & mask;
      wider[at] = {static_cast<uint32_t>(hash >> 32), static_cast<int32_t>(id)};
    }
    slots_ = std::move(wider);
  }

  std::vector<Slot> slots_;
  std::vector<char> arena_;             // the names in UTF-8, one after another
  std::vector<int64_t> offsets_ = {0};  // name i is arena_[offsets_[i] : offsets_[i + 1]]
};

// Builds the ragged arrays of a data set, token by token. The names of the token under way wait in one buffer.
class Encoder {
 public:
  // frozen: the vocabulary stays as it is, and attributes that it does not hold are left out.
  Encoder(Vocabulary& vocabulary, bool frozen) : vocabulary_(vocabulary), frozen_(frozen) {}

  // An attribute: begin(), append() its name, end() with its value. drop() forgets what was begun.
  void begin() { begun_ = text_.size(); }
  void append(char c) { text_.push_back(c); }
  void append(std::string_view piece) { text_.append(piece); }
  std::string_view begun() const { return std::string_view(text_).substr(begun_); }
  void end(double value) { entries_.push_back({begun_, text_.size() - begun_, 0, value}); }
  void drop() { text_.resize(begun_); }

  // Attributes of the token under way; from `first` on, put in the order of their names.
  size_t entries() const { return entries_.size(); }
  void sort_from(size_t first) {
    std::sort(entries_.begin() + static_cast<std::ptrdiff_t>(first), entries_.end(),
              [this](const Entry& a, const Entry& b) { return text_of(a) < text_of(b); });
  }

  void end_token() {
    for (Entry& entry : entries_) {
      entry.hash = hash_name(text_of(entry));
      vocabulary_.fetch_slot(entry.hash);
    }
    if (vocabulary_.size() > kLargeVocabulary) fetch_names();
    for (const Entry& entry : entries_) {
      const std::string_view name = text_of(entry);
      add(frozen_ ? vocabulary_.find(name, entry.hash) : vocabulary_.intern(name, entry.hash), entry.value);
    }
    entries_.clear();
    text_.clear();
    token_offsets.push_back(static_cast<int64_t>(ids.size()));
  }

  // A token whose attributes are numbered already; kUnknown ones are left out.
  void add(int32_t id, double value) {
    if (id == Vocabulary::kUnknown) return;
    if (value != 1.0 && !weighted_) {
      values.assign(ids.size(), 1.0);
      weighted_ = true;
    }
    ids.push_back(id);
    if (weighted_) values.push_back(value);
  }
  void end_numbered_token() { token_offsets.push_back(static_cast<int64_t>(ids.size())); }

  void end_sequence() { offsets.push_back(static_cast<int64_t>(token_offsets.size()) - 1); }

  bool weighted() const { return weighted_; }  // some value is not 1
  bool frozen() const { return frozen_; }
  Vocabulary& vocabulary() { return vocabulary_; }

  std::vector<int64_t> offsets = {0};        // (B + 1,) tokens of each sequence
  std::vector<int64_t> token_offsets = {0};  // (N + 1,) entries of each token
  std::vector<int32_t> ids;                  // (nnz,)
  std::vector<double> values;                // (nnz,) if weighted(), else empty

 private:
  struct Entry {
    size_t begin, length;  // of the name in text_
    uint64_t hash;
    double value;
  };
  static constexpr int64_t kLargeVocabulary = 4096;  // names that the first-level cache no longer holds

  std::string_view text_of(const Entry& entry) const { return {text_.data() + entry.begin, entry.length}; }

  void fetch_names() {
    likely_.clear();
    for (const Entry& entry : entries_) {
      const int32_t id = vocabulary_.likely(entry.hash);
      if (id == Vocabulary::kUnknown) continue;
      vocabulary_.fetch_offset(id);
      likely_.push_back(id);
    }
    for (const int32_t id : likely_) vocabulary_.fetch_name(id);
  }

  Vocabulary& vocabulary_;
  bool frozen_;
  bool weighted_ = false;
  size_t begun_ = 0;
  std::string text_;
  std::vector<Entry> entries_;
  std::vector<int32_t> likely_;
};

}  // namespace scansion
