import FCMModel
import GatewayCore
import HTTPTypes
import Hummingbird
import NIOCore
import StrictJSON

/// Manages a tenant's device groups: `/v1/tenants/{tenant}/device-groups`.
struct DeviceGroupsController {
    let groups: DeviceGroups

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        routes.get("v1/tenants/:tenant/device-groups", use: self.list)
        routes.get("v1/tenants/:tenant/device-groups/:name", use: self.get)
        routes.put("v1/tenants/:tenant/device-groups/:name", use: self.put)
        routes.delete("v1/tenants/:tenant/device-groups/:name", use: self.delete)
        routes.post("v1/tenants/:tenant/device-groups/:name/members", use: self.add)
        routes.post("v1/tenants/:tenant/device-groups/:name/members/remove", use: self.remove)
        return routes
    }

    @Sendable
    private func list(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let caller = try Self.caller(request, context)
        let query = try QueryReader(request, allowed: ["limit", "cursor"])
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
        return Response(json: writer.finish())
    }

    @Sendable
    private func get(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let caller = try Self.caller(request, context)
        let name = try DeviceGroupName.read(context.parameters.get("name"))
        guard let group = try await self.groups.show(name, by: caller) else {
            throw Refusal(.notFound, "The tenant has no device group of this name")
        }
        return Self.response(group)
    }

    @Sendable
    private func put(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let change = try Self.change(request, context)
        let (group, isNew) = try await self.groups.put(change.name, tokens: change.tokens, by: change.caller)
        return Self.response(group, status: isNew ? .created : .ok)
    }

    @Sendable
    private func add(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let change = try Self.change(request, context)
        return Self.response(try await self.groups.add(change.tokens, to: change.name, by: change.caller))
    }

    @Sendable
    private func remove(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let change = try Self.change(request, context)
        let group = try await self.groups.remove(change.tokens, from: change.name, by: change.caller)
        // Gone with its last member: answered as its deletion is.
        return group.map { Self.response($0) } ?? Response(status: .noContent)
    }

    @Sendable
    private func delete(_ request: Request, context: GatewayRequestContext) async throws -> Response {
        let caller = try Self.caller(request, context)
        let name = try DeviceGroupName.read(context.parameters.get("name"))
        try await self.groups.delete(name, by: caller)
        return Response(status: .noContent)
    }

    // MARK: Reading

    private struct Change {
        var name: String
        var tokens: [String]
        var caller: GroupCaller
    }

    private static func change(_ request: Request, _ context: GatewayRequestContext) throws(Refusal) -> Change {
        let caller = try Self.caller(request, context)
        let name = try DeviceGroupName.read(context.parameters.get("name"))
        let members = try JSONBody.members(
            of: context.body,
            contentType: request.headers[.contentType],
            limits: .small
        )
        return Change(name: name, tokens: try DeviceGroupBody(members).tokens, caller: caller)
    }

    private static func caller(_ request: Request, _ context: GatewayRequestContext) throws(Refusal) -> GroupCaller {
        GroupCaller(
            principal: try Self.principal(context),
            origin: context.origin(method: request.method.rawValue),
            deadline: context.deadline
        )
    }

    private static func principal(_ context: GatewayRequestContext) throws(Refusal) -> Principal {
        let principal = try context.authenticatedPrincipal()
        try principal.checkTenant((context.parameters.get("tenant") ?? "").utf8)
        guard principal.has(.manageDeviceGroups) else {
            throw Refusal(.forbidden, "The key lacks the scope device-groups:manage")
        }
        return principal
    }

    // MARK: Answering

    private static func response(_ group: DeviceGroup, status: HTTPResponse.Status = .ok) -> Response {
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
        return Response(status: status, json: writer.finish())
    }
}
