import HTTPTypes

/// The forms of a request target (RFC 9112, section 3.2).
enum HTTPRequestTarget {
    /// The path and query of a target, `nil` for a target that has none or names another authority than `Host`.
    ///
    /// The target consists of bytes that may stand in one; `*` is for `OPTIONS` alone.
    static func path(of target: [UInt8], method: HTTPRequest.Method, host: String?) -> [UInt8]? {
        if target.first == UInt8(ascii: "/") {
            return target
        }
        if target == [UInt8(ascii: "*")] {
            return method == .options ? target : nil
        }
        return self.path(ofAbsolute: String(decoding: target, as: UTF8.self), method: method, host: host)
            .map { Array($0.utf8) }
    }

    private static func path(ofAbsolute target: String, method: HTTPRequest.Method, host: String?) -> String? {
        // Absolute form (RFC 9112, section 3.2.2).
        guard let schemeEnd = target.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = target[..<schemeEnd]
        guard scheme.equalsIgnoringCase("http") || scheme.equalsIgnoringCase("https") else { return nil }
        let rest = target[target.index(after: schemeEnd)...]
        guard rest.hasPrefix("//") else { return nil }
        let authorityStart = rest.dropFirst(2)
        let authorityEnd =
            authorityStart.utf8.firstIndex(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") })
            ?? authorityStart.endIndex
        let authority = authorityStart[..<authorityEnd]
        guard let host, authority.equalsIgnoringCase(host) else { return nil }
        let path = authorityStart[authorityEnd...]
        guard let first = path.utf8.first else { return method == .options ? "*" : "/" }
        return first == UInt8(ascii: "?") ? "/" + path : String(path)
    }
}
