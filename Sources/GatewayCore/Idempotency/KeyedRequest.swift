import Crypto

/// A request that carries an idempotency key.
package struct KeyedRequest: Sendable {
    /// The routes that take a key; each has keys of its own.
    package enum Route: String, Sendable, Hashable, CaseIterable {
        /// The REST API.
        case messages
        /// The legacy protocol.
        case legacy
        /// HTTP v1.
        case v1
    }

    /// The key.
    let key: IdempotencyKey
    /// Where it was used.
    let route: Route
    /// The SHA-256 of method, path and body.
    let digest: [UInt8]

    /// A request.
    ///
    /// - Parameters:
    ///   - key: the key.
    ///   - route: where it was used.
    ///   - method: the HTTP method.
    ///   - path: path and query as they came.
    ///   - body: the body as it came.
    package init(key: IdempotencyKey, route: Route, method: String, path: [UInt8], body: [UInt8]) {
        self.key = key
        self.route = route
        var hash = SHA256()
        // Neither a method nor a path has a line feed, so that nothing can be moved from one part to the next.
        hash.update(data: Array("\(method)\n".utf8) + path + [0x0A])
        hash.update(data: body)
        self.digest = hash.finalize().bytes
    }
}
