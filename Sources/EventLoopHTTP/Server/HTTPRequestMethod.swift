import HTTPTypes

/// The methods that the server lets pass (RFC 9110, section 9.3; RFC 5789).
///
/// `CONNECT` is none of them: there is nothing to tunnel to.
enum HTTPRequestMethod {
    private static let known: [(name: [UInt8], method: HTTPRequest.Method)] = [
        HTTPRequest.Method.post, .get, .put, .delete, .patch, .head, .options, .trace,
    ]
    .map { (Array($0.rawValue.utf8), $0) }

    /// The method of this name, in capitals; `nil` for any other.
    static func method(_ name: Span<UInt8>) -> HTTPRequest.Method? {
        for entry in Self.known where name.elementsEqual(entry.name) {
            return entry.method
        }
        return nil
    }
}
