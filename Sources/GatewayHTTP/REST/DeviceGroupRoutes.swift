import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Manages a tenant's device groups: `/v1/tenants/{tenant}/device-groups`.
struct DeviceGroupRoutes {
    /// The most bytes that a group's name has.
    static let maxNameBytes = 256

    let groups: DeviceGroups

    var endpoints: [any Endpoint] {
        [
            Handler(.get, "/v1/tenants/{tenant}/device-groups", action: .deviceGroupList, self.list),
            Handler(.get, "/v1/tenants/{tenant}/device-groups/{name}", action: .deviceGroupGet, self.get),
            Handler(.put, "/v1/tenants/{tenant}/device-groups/{name}", action: .deviceGroupPut, self.put),
            Handler(.delete, "/v1/tenants/{tenant}/device-groups/{name}", action: .deviceGroupDelete, self.delete),
            Handler(.post, "/v1/tenants/{tenant}/device-groups/{name}/members", action: .deviceGroupAdd, self.add),
            Handler(
                .post,
                "/v1/tenants/{tenant}/device-groups/{name}/members/remove",
                action: .deviceGroupRemove,
                self.remove
            ),
        ]
    }

    @Sendable
    private func list(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        let query = try exchange.query(["limit", "cursor"])
        let limit = try query.limit()
        let cursor = try query.cursor()
        let names = try await self.groups.names(after: cursor, limit: limit + 1, by: caller)
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("device_groups")
        writer.beginArray()
        for name in names.prefix(limit) { writer.string(name) }
        writer.endArray()
        if names.count > limit, let last = names.prefix(limit).last {
            writer.member("next_cursor", Cursor.text(of: last))
        }
        writer.endObject()
        return HTTPServerResponse(json: writer.finish())
    }

    @Sendable
    private func get(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        let name = try exchange.groupName
        let group = try await self.groups.show(name, by: caller)
        guard let group else { throw Refusal(.notFound, "The tenant has no device group of this name") }
        return Self.response(group)
    }

    @Sendable
    private func put(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let change = try Change(exchange)
        let (group, isNew) = try await self.groups.put(change.name, tokens: change.tokens, by: change.caller)
        return Self.response(group, status: isNew ? .created : .ok)
    }

    @Sendable
    private func add(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let change = try Change(exchange)
        return Self.response(try await self.groups.add(change.tokens, to: change.name, by: change.caller))
    }

    @Sendable
    private func remove(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let change = try Change(exchange)
        let group = try await self.groups.remove(change.tokens, from: change.name, by: change.caller)
        // Gone with its last member: answered as its deletion is.
        return group.map { Self.response($0) } ?? HTTPServerResponse(status: .noContent)
    }

    @Sendable
    private func delete(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        let name = try exchange.groupName
        try await self.groups.delete(name, by: caller)
        return HTTPServerResponse(status: .noContent)
    }

    /// A change of a group's members.
    private struct Change {
        let name: String
        let tokens: [String]
        let caller: Caller

        init(_ exchange: Exchange) throws {
            self.name = try exchange.groupName
            self.tokens = try DeviceGroupBody(exchange.members(limits: .small)).tokens
            self.caller = try exchange.caller
        }
    }

    private static func response(_ group: DeviceGroup, status: HTTPResponse.Status = .ok) -> HTTPServerResponse {
        var writer = JSONWriter(reservingCapacity: 128 + group.members.count * 192)
        writer.beginObject()
        writer.member("name", group.name)
        writer.key("tokens")
        writer.beginArray()
        for token in group.tokens { writer.string(token) }
        writer.endArray()
        writer.member("exact", group.isExact)
        writer.member("updated_at", group.updatedAt.rfc3339)
        writer.endObject()
        return HTTPServerResponse(status: status, json: writer.finish())
    }
}

extension Exchange {
    /// The name of a device group in the path.
    ///
    /// - Throws: `invalid_field` for a name that no group can have.
    fileprivate var groupName: String {
        get throws(Refusal) {
            guard let name = self.parameters.decoded("name"), name.utf8.count <= DeviceGroupRoutes.maxNameBytes,
                ValueRules.isGroupName(name)
            else {
                throw Refusal(
                    .invalidField,
                    """
                    A device group's name has 1 to \(DeviceGroupRoutes.maxNameBytes) bytes of UTF-8, percent-encoded, no control characters, \
                    and does not begin with \(ValueRules.reservedGroupPrefix)
                    """
                )
            }
            return name
        }
    }
}

/// The body of a change of a device group: `{"tokens": […]}`.
private struct DeviceGroupBody {
    /// Different tokens, at their first positions; 1 to 20.
    let tokens: [String]

    /// Reads a body.
    ///
    /// - Throws: a problem with every field at fault; `group_too_large` for more tokens than a group can have.
    init(_ members: JSONMembers) throws(Refusal) {
        var problems = FieldProblems()
        var given: [String]?
        var isThere = false
        for member in members where !problems.isFull {
            guard member.keyEquals("tokens") else {
                problems.unknown(JSONPointer().appending(member.key))
                continue
            }
            isThere = true
            // A token may be listed several times.
            given = problems.strings(
                member.value,
                atMost: GroupChange.maxListedTokens,
                at: JSONPointer().appending("tokens")
            )
        }
        let pointer = JSONPointer().appending("tokens")
        if !isThere { problems.report(.invalidField, at: pointer, "This is needed: an array of registration tokens") }
        var tokens: [String] = []
        // By bytes: as texts, some that FCM tells apart are equal.
        var seen: Set<ByteBuffer> = []
        for (index, token) in (given ?? []).enumerated() {
            guard Self.isToken(token, at: pointer.appending(index), &problems) else { continue }
            if seen.insert(ByteBuffer(string: token)).inserted { tokens.append(token) }
        }
        if given?.isEmpty == true { problems.report(.invalidField, at: pointer, "This must not be empty") }
        if tokens.count > GroupChange.maxTokens {
            problems.report(.groupTooLarge, at: pointer, "This may hold \(GroupChange.maxTokens) different tokens")
        }
        guard problems.list.isEmpty else { throw Refusal(problems.list) }
        self.tokens = tokens
    }

    private static func isToken(
        _ token: String,
        at pointer: @autoclosure () -> JSONPointer,
        _ problems: inout FieldProblems
    ) -> Bool {
        if TopicName.hasLegacyPrefix(token) {
            problems.report(.invalidField, at: pointer(), "This is a topic, not a device")
        } else if token.utf8.count > RegistrationToken.maxBytes {
            problems.report(.invalidToken, at: pointer(), "This is too long for a registration token")
        } else {
            return true
        }
        return false
    }
}
