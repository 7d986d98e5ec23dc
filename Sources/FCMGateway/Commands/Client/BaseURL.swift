import ArgumentParser
import FCMModel
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

    /// Where a listener is reached from its own machine; no URL where its host is malformed.
    static func address(ofListener host: String, port: Int, isEncrypted: Bool) -> String {
        let host =
            switch host {
            case "0.0.0.0", "": "127.0.0.1"
            case "::": "[::1]"
            default: host.contains(":") ? "[\(host)]" : host
            }
        return "\(isEncrypted ? "https" : "http")://\(host):\(port)"
    }

    /// The address of something below this one.
    ///
    /// - Parameters:
    ///   - path: Segments, not yet encoded.
    ///   - query: Parameters, not yet encoded.
    /// - Returns: The encoded address.
    func appending(_ path: [String], query: [(name: String, value: String)]) -> String {
        let segments = path.map { "/" + PercentEncoding.encoded($0) }.joined()
        guard !query.isEmpty else { return self.text + segments }
        let parameters = query.map { "\(PercentEncoding.encoded($0.name))=\(PercentEncoding.encoded($0.value))" }
            .joined(separator: "&")
        return "\(self.text)\(segments)?\(parameters)"
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
