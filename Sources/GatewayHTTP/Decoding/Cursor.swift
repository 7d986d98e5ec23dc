import FCMModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The opaque text by which a list is continued.
enum Cursor {
    /// What a caller is told who made a cursor up.
    static let problem = Problem(.invalidField, "cursor must be a next_cursor of an earlier page")

    /// Makes a cursor from what is needed to continue.
    static func text(of content: String) -> String {
        Data(content.utf8).base64EncodedString()
            .replacing("+", with: "-")
            .replacing("/", with: "_")
            .replacing("=", with: "")
    }

    /// What a cursor was made from; `nil` for text that is none.
    static func content(of text: String) -> String? {
        let base64 = text.replacing("-", with: "+").replacing("_", with: "/")
        let padded = base64 + String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
        guard let content = Data(base64Encoded: padded).flatMap({ String(validating: $0, as: UTF8.self) }),
            Self.text(of: content) == text
        else { return nil }
        return content
    }
}
