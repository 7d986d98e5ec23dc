import ArgumentParser
import Foundation

/// A listener's address: scheme, host, port and perhaps a path in front of the API's own.
struct BaseURL: Sendable, Equatable {
    /// The address without a trailing slash.
    let text: String

    /// Accepts `http` and `https` addresses without user, query or fragment.
    init?(_ text: String) {
        guard let url = URLComponents(string: text), let scheme = url.scheme, ["http", "https"].contains(scheme),
            let host = url.host, !host.isEmpty, url.user == nil, url.password == nil, url.query == nil,
            url.fragment == nil, url.port.map({ (1...65_535).contains($0) }) ?? true
        else { return nil }
        self.text = text.hasSuffix("/") ? String(text.dropLast()) : text
    }

    /// The address of something below this one.
    ///
    /// - Parameters:
    ///   - path: Segments, not yet encoded.
    ///   - query: Parameters, not yet encoded.
    /// - Returns: The encoded address.
    func appending(_ path: [String], query: [(name: String, value: String)]) -> String {
        let segments = path.map { "/" + Self.encode($0) }.joined()
        guard !query.isEmpty else { return self.text + segments }
        let parameters = query.map { "\(Self.encode($0.name))=\(Self.encode($0.value))" }.joined(separator: "&")
        return "\(self.text)\(segments)?\(parameters)"
    }

    /// Encodes everything but RFC 3986's unreserved characters.
    private static func encode(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return encoded
    }
}

extension BaseURL: ExpressibleByArgument, CustomStringConvertible {
    /// Accepts an argument.
    init?(argument: String) {
        self.init(argument)
    }

    /// The address.
    var description: String { self.text }
}
