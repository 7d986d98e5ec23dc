import NIOCore
package import StrictJSON

/// The parts of a message for one platform: `android`, `apns`, `webpush` and `fcm_options`, as HTTP v1 defines them.
///
/// For HTTP v1 they are a JSON Merge Patch (RFC 7396) of the members that the message's other fields become: objects
/// merge member by member, `null` removes a member, and any other value replaces it. Names of headers are compared
/// without letter case. For the legacy protocol they must agree with the other fields, because legacy has one form for
/// all platforms (decision 0066).
///
/// Example: `"ttl": 600, "android": {"ttl": "60s"}` keeps the message for ten minutes for Apple's devices and browsers,
/// and for one minute for Android.
///
/// It is a class, so that a message without blocks costs nothing more to copy.
package final class PlatformBlocks: Sendable {
    package static let names = ["android", "apns", "webpush", "fcm_options"]

    /// The most bytes of all blocks together. FCM accepts 4 KiB for each platform.
    package static let maxBytes = 16 * 1024

    /// One JSON object without blanks. Fields have their names in `snake_case`.
    private let json: ByteBuffer
    /// The bytes of the larger `data` of a platform (V-SIZE).
    let dataBytes: Int
    /// True if a block asks for fast delivery.
    let isUrgent: Bool
    package let isCollapsible: Bool

    /// Takes blocks that ``problems(of:in:atMost:)`` has accepted. Returns `nil` if there are none.
    package init?(_ blocks: [(name: String, value: JSONValue)]) {
        guard !blocks.isEmpty else { return nil }
        var writer = JSONWriter()
        writer.beginObject()
        for block in blocks {
            guard let kind = V1Schema.message[block.name]?.kind else { continue }
            writer.key(block.name)
            writer.write(block.value, as: kind)
        }
        writer.endObject()
        self.json = writer.finish()
        let content = Self.parsed(self.json)
        self.dataBytes = V1RequestDecoder.payloadBytes(of: content)
        let options = V1RequestDecoder.options(of: content)
        (self.isUrgent, self.isCollapsible) = (options.isUrgent, options.collapseKey != nil)
    }

    /// Checks a block against HTTP v1's fields. Returns its problems in the words of the REST API.
    package static func problems(of value: JSONValue, in name: String, atMost limit: Int) -> [Refusal.Field] {
        guard let kind = V1Schema.message[name]?.kind else { return [] }
        var checker = V1Schema.Checker(limit: limit)
        checker.check(value, kind, at: V1Path(stringLiteral: name))
        return (checker.misformed + checker.badValues).prefix(limit).map(\.field)
    }

    /// Returns the members of a message with the blocks applied.
    func applied(to members: ByteBuffer) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: members.readableBytes + self.json.readableBytes)
        writer.patch(Self.parsed(members), by: Self.parsed(self.json), depth: 0)
        return writer.finish()
    }

    package var byteCount: Int { self.json.readableBytes }

    package var content: JSONValue { Self.parsed(self.json) }

    /// Parses JSON that a ``JSONWriter`` has written.
    private static func parsed(_ json: ByteBuffer) -> JSONValue {
        // No limit: the members that options become are added to those of a body that was checked.
        let limits = JSONLimits(maxDepth: 64, maxMembers: .max, maxElements: .max, maxSpecialCharacters: .max)
        do {
            return try JSONDocument(parsing: json, limits: limits).root
        } catch {
            preconditionFailure("the gateway's own JSON does not parse: \(error.reason)")
        }
    }
}

extension PlatformBlocks: Hashable {
    package static func == (lhs: PlatformBlocks, rhs: PlatformBlocks) -> Bool { lhs.json == rhs.json }

    package func hash(into hasher: inout Hasher) { hasher.combine(self.json) }
}

extension Message {
    /// Returns the message for a legacy upstream, in which the blocks have become options for all platforms. Throws the
    /// refusal of the first field that legacy can't express or that differs from another platform's.
    ///
    /// An `apns-expiration` is a time in seconds since 1970, like `now`.
    package func withoutPlatforms(now: Int) throws(Refusal) -> Message {
        guard let content = self.platforms?.content else { return self }
        var message = self
        message.platforms = nil
        var translation = V1LegacyTranslation(of: message, now: now)
        do throws(V1LegacyTranslation.Failure) {
            return try translation.message(from: content, refusingNull: true)
        } catch {
            throw Refusal([error.field])
        }
    }
}

extension JSONWriter {
    /// Writes a checked value with the names of its fields in `snake_case`.
    fileprivate mutating func write(_ value: JSONValue, as kind: V1Schema.Kind) {
        guard case .message(let schema) = kind, let members = value.members else { return self.value(value) }
        self.beginObject()
        for member in members {
            guard let field = schema[member.key] else { continue }
            self.key(field.name)
            self.write(member.value, as: field.kind)
        }
        self.endObject()
    }

    /// Writes an object after a merge patch. `depth` counts the names that lead to it; `old` is `nil` for a new object.
    fileprivate mutating func patch(
        _ old: JSONValue?,
        by patch: JSONValue,
        depth: Int,
        ignoringCase: Bool = false
    ) {
        func partner(of name: String, in object: JSONValue?) -> JSONValue? {
            guard ignoringCase else { return object?[name] }
            return object?.members?.first { $0.key.lowercased() == name.lowercased() }?.value
        }
        self.beginObject()
        for member in old?.members.map(Array.init) ?? [] where partner(of: member.key, in: patch) == nil {
            self.key(member.key)
            self.value(member.value)
        }
        for member in patch.members.map(Array.init) ?? [] where !member.value.isNull {
            let name = member.key
            self.key(name)
            if member.value.members == nil {
                self.value(member.value)
            } else {
                let old = partner(of: name, in: old)
                let isHeaders = depth == 1 && name == "headers"
                self.patch(old?.members == nil ? nil : old, by: member.value, depth: depth + 1, ignoringCase: isHeaders)
            }
        }
        self.endObject()
    }
}
