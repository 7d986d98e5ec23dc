package import FCMModel

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
    /// What tells it from other requests with the same key.
    let digest: [UInt8]

    /// A request.
    ///
    /// The digest is of method, path, format and the decoded message; how long the caller waits is no part of it.
    ///
    /// - Parameters:
    ///   - key: the key.
    ///   - route: where it was used.
    ///   - format: how it was written, and so how it is answered, where the route has a choice.
    ///   - method: the HTTP method.
    ///   - path: the path as it came; a query means nothing to a send and is left out.
    ///   - target: whom the caller addressed, those included whom nothing is sent to.
    ///   - groupName: the name of the device group, where the caller named one.
    ///   - message: what the caller said.
    package init(
        key: IdempotencyKey,
        route: Route,
        format: LegacyFormat = .json,
        method: String,
        path: [UInt8],
        target: Target,
        groupName: String? = nil,
        message: Message
    ) {
        self.key = key
        self.route = route
        var digest = MessageDigest()
        digest.add(method)
        digest.add(String(decoding: path.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self))
        digest.add(format == .form ? "form" : "json")
        digest.add(groupName ?? "")
        digest.add(target)
        digest.add(message)
        self.digest = digest.finish()
    }
}
