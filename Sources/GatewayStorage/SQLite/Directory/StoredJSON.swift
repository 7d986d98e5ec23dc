#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Small lists as JSON text in one column.
enum StoredJSON {
    /// - Returns: `nil` for text that is not such a list.
    static func decode<T: Decodable>(_ type: T.Type, from text: String) -> T? {
        try? JSONDecoder().decode(type, from: Data(text.utf8))
    }

    /// The same text for the same value.
    static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}
