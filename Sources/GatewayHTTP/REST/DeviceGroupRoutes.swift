import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Manages a tenant's device groups: `/v1/tenants/{tenant}/device-groups`.
struct DeviceGroupRoutes {
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
        let (limit, cursor) = try exchange.pageQuery()
        let names = try await self.groups.names(after: cursor, limit: limit + 1, by: caller)
        return .page("device_groups", names, limit: limit, cursor: { $0 }) { $0.string($1) }
    }

    @Sendable
    private func get(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        guard let group = try await self.groups.show(exchange.groupName, by: caller) else {
            throw Refusal(.notFound, "The tenant has no device group of this name")
        }
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
        // The group disappeared with its last member, so the answer is that of a deletion.
        return group.map { Self.response($0) } ?? HTTPServerResponse(status: .noContent)
    }

    @Sendable
    private func delete(_ exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        try await self.groups.delete(exchange.groupName, by: caller)
        return HTTPServerResponse(status: .noContent)
    }

    private struct Change {
        let name: String
        let tokens: [String]
        let caller: Caller

        init(_ exchange: Exchange) throws {
            self.name = try exchange.groupName
            self.tokens = try Self.tokens(exchange.members(limits: .small))
            self.caller = try exchange.caller
        }

        /// Reads the distinct tokens of a body, `{"tokens": […]}`, in order of first occurrence; 1 to 20.
        private static func tokens(_ members: JSONMembers) throws(Refusal) -> [String] {
            let pointer = JSONPointer().appending("tokens")
            var problems = FieldProblems()
            let missing = "This is required: an array of registration tokens"
            // A token may be listed several times.
            let given: [String]? = problems.only("tokens", of: members, missing: missing) { problems, value in
                problems.strings(value, atMost: GroupChange.maxListedTokens, at: pointer)
            }
            var tokens: [String] = []
            // Compared by bytes: some tokens that differ for FCM are equal as Swift strings.
            var seen: Set<ByteBuffer> = []
            for (index, token) in (given ?? []).enumerated() {
                if TopicName.hasLegacyPrefix(token) {
                    problems.report(.invalidField, at: pointer.appending(index), "This is a topic, not a device")
                } else if problems.checkToken(token, at: pointer.appending(index)),
                    seen.insert(ByteBuffer(string: token)).inserted
                {
                    tokens.append(token)
                }
            }
            if given?.isEmpty == true { problems.report(.invalidField, at: pointer, "This must not be empty") }
            if tokens.count > GroupChange.maxTokens {
                let detail = "This may hold \(GroupChange.maxTokens) different tokens"
                problems.report(.groupTooLarge, at: pointer, detail)
            }
            guard problems.list.isEmpty else { throw Refusal(problems.list) }
            return tokens
        }
    }

    private static func response(_ group: DeviceGroup, status: HTTPResponse.Status = .ok) -> HTTPServerResponse {
        var writer = JSONWriter(reservingCapacity: 128 + group.members.count * 192)
        writer.beginObject()
        writer.member("name", group.name)
        writer.member("tokens", group.tokens)
        writer.member("exact", group.isExact)
        writer.member("updated_at", group.updatedAt.rfc3339)
        writer.endObject()
        return HTTPServerResponse(status: status, json: writer.finish())
    }
}

extension Exchange {
    /// The name of a device group in the path; throws `invalid_field` for an impossible one.
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
