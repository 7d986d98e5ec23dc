package import HTTPTypes

/// The head of a request that passed the server's checks.
package final class HTTPRequestHead: Sendable {
    /// The method.
    package let method: HTTPRequest.Method
    /// The bytes of path and query: they start with `/`, or are `*`.
    package let pathBytes: [UInt8]
    /// The field lines, `Host` among them.
    package let fields: HTTPFieldLines
    private let scheme: String
    private let authority: String?

    init(method: HTTPRequest.Method, scheme: String, authority: String?, path: [UInt8], fields: HTTPFieldLines) {
        self.method = method
        self.scheme = scheme
        self.authority = authority
        self.pathBytes = path
        self.fields = fields
    }

    /// A head that did not come over the wire.
    ///
    /// - Parameter request: method, scheme, authority, path and fields; no path is as good as `/`.
    package convenience init(_ request: HTTPRequest) {
        self.init(
            method: request.method,
            scheme: request.scheme ?? "http",
            authority: request.authority,
            path: Array((request.path ?? "/").utf8),
            fields: HTTPFieldLines(request.headerFields)
        )
    }

    /// Path and query.
    package var path: String { String(decoding: self.pathBytes, as: UTF8.self) }

    /// The head in the form that HTTPTypes gives it: `Host` is the authority and no field.
    package var httpRequest: HTTPRequest {
        var fields = self.fields.fields
        fields[.host] = nil
        return HTTPRequest(
            method: self.method,
            scheme: self.scheme,
            authority: self.authority,
            path: self.path,
            headerFields: fields
        )
    }
}

extension HTTPField.Name {
    /// `Host`, which HTTPTypes leaves to the authority.
    static let host = HTTPField.Name(constant: "Host")
}
