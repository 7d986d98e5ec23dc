import FCMModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The opaque text by which a list is continued.
enum Cursor {
    /// What a caller is told who made a cursor up.
    static let refusal = Refusal(.invalidField, "cursor must be a next_cursor of an earlier page")

    /// Makes a cursor from what is needed to continue.
    static func text(of content: String) -> String {
        Self.text(of: Array(content.utf8))
    }

    /// Makes a cursor from bytes.
    static func text(of bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString()
            .replacing("+", with: "-")
            .replacing("/", with: "_")
            .replacing("=", with: "")
    }

    /// What a cursor was made from; `nil` for text that is none.
    static func content(of text: String) -> String? {
        self.bytes(of: text).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// The bytes that a cursor was made from; `nil` for text that is none.
    static func bytes(of text: String) -> [UInt8]? {
        let base64 = text.replacing("-", with: "+").replacing("_", with: "/")
        let padded = base64 + String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
        guard let bytes = Data(base64Encoded: padded).map({ [UInt8]($0) }), Self.text(of: bytes) == text else {
            return nil
        }
        return bytes
    }
}
