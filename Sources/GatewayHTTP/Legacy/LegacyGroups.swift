import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// Manages device groups as FCM does: `POST` and `GET /fcm/notification`.
///
/// Names, keys and errors are FCM's own. Callers authenticate with the gateway's API key, and `project_id` must be the
/// tenant's sender id (G-PROJECT).
struct LegacyGroups: Endpoint {
    let route: Route
    let groups: DeviceGroups

    init(_ method: HTTPRequest.Method, _ groups: DeviceGroups) {
        // Every POST counts as a put here: the body names the real change, and the scope is checked before it is read.
        let action: AuditRecord.Action = method == .get ? .deviceGroupLookUp : .deviceGroupPut
        self.route = Route(method, GroupRequestEncoder.path)
            .with(\.credential, .legacyKey)
            .with(\.action, action)
            .with(\.dialect, .groups)
            .with(\.spelling, .exact)
        self.groups = groups
    }

    func read(_ exchange: Exchange) throws -> GroupRequest {
        let senderID = exchange.fields[.projectID]
        let tenant = try exchange.caller.profile.tenant
        guard senderID == nil || senderID == tenant.senderID else {
            throw Refusal(.forbidden)
        }
        let request = exchange.request
        guard self.route.method == .get else {
            return try GroupRequestDecoder.decode(request.body, contentType: exchange.contentType)
        }
        let query = request.head.pathBytes.dropFirst(self.route.template.utf8.count + 1)
        return try GroupRequestDecoder.decode(query: ByteBuffer(bytes: query))
    }

    func perform(_ work: GroupRequest, for exchange: Exchange) async throws -> HTTPServerResponse {
        let caller = try exchange.caller
        do throws(Refusal) {
            return HTTPServerResponse(GroupReplyWriter.reply(to: try await self.groups.forward(work, by: caller)))
        } catch  where error.code == .groupTooLarge {
            return HTTPServerResponse(GroupReplyWriter.reply(to: error))
        } catch {
            return HTTPServerResponse(GroupReplyWriter.unavailable(error.code, retryAfter: error.retryAfter))
        }
    }
}
