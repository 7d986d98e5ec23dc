import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// Answers the requests: control routes, scripted faults, then the protocols.
struct EmulatorResponder: HTTPResponder {
    let state: EmulatorState
    let legacy: LegacyEndpoint
    let maxBodyBytes: Int
    /// Scheme of the URLs it hands out.
    let scheme: String
    /// Measures pauses.
    let clock: any Clock<Duration>
    /// Tells the time.
    let now: @Sendable () -> Date

    func respond(to request: Request, context: EmulatorContext) async throws -> Response {
        let response = try await self.answer(to: request, context: context)
        // To HEAD, no body follows (RFC 9110, 9.3.2); a client takes a stream that has one for broken.
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func answer(to request: Request, context: EmulatorContext) async throws -> Response {
        let watch = try await context.channel.pipeline.handler(type: PeerWatch.self).get()
        guard let bytes = try await self.body(of: request) else {
            return self.tooLarge(request, origin: watch.origin)
        }
        let received = ReceivedRequest(origin: watch.origin, time: self.now(), head: request.head, bodyBytes: bytes)
        if received.path.hasPrefix(ControlRoutes.prefix) {
            return Response(ControlRoutes(state: self.state, scheme: self.scheme).answer(to: received))
        }
        let response = await self.respond(to: received, watch: watch)
        if let (latency, hold) = self.state.holdAnswer() {
            await self.clock.pause(for: latency, unless: hold.end)
            self.state.release(hold.id)
        }
        return response
    }

    private func respond(to request: ReceivedRequest, watch: PeerWatch) async -> Response {
        switch self.state.admit(request) {
        case .handle:
            return Response(await self.handle(request, id: nil))
        case .fault(let action, let id):
            return await self.play(action, request, id: id, origin: watch.origin)
        case .hold(.delay(let pause), let id, let hold):
            await self.clock.pause(for: pause, unless: hold.end)
            self.state.release(hold.id)
            return Response(await self.handle(request, id: id))
        case .hold(_, let id, let hold):
            return await self.hang(request, id: id, until: hold, watch: watch)
        }
    }

    /// The body's bytes, or nil if there are too many.
    private func body(of request: Request) async throws -> [UInt8]? {
        do {
            return Array(buffer: try await request.body.collect(upTo: self.maxBodyBytes))
        } catch is NIOTooManyBytesError {
            return nil
        }
    }

    private func tooLarge(_ request: Request, origin: RequestOrigin) -> Response {
        let received = ReceivedRequest(origin: origin, time: self.now(), head: request.head, bodyBytes: [])
        let answer = Answer.page("Request Entity Too Large", status: 413)
        let reason = "the body has more than \(self.maxBodyBytes) bytes"
        return Response(self.refuse(received, id: nil, answer: answer, reason: reason))
    }
}

// MARK: Protocols

extension EmulatorResponder {
    /// Handles a request by its path.
    private func handle(_ request: ReceivedRequest, id: Int?) async -> Answer {
        if let project = V1Endpoint.project(in: request.path) {
            return self.handleV1(request, id: id, project: project)
        }
        if let path = TopicRequestPath(request.path) {
            return self.handleTopics(request, id: id, path: path)
        }
        switch request.path {
        case LegacyEndpoint.path: return self.handleLegacy(request, id: id)
        case GroupEndpoint.path: return self.handleGroups(request, id: id)
        case TokenEndpoint.path: return await self.handleToken(request, id: id)
        default: return self.refuse(request, id: id, answer: .notFound, reason: "nothing is served at this path")
        }
    }

    private func handleLegacy(_ request: ReceivedRequest, id: Int?) -> Answer {
        switch self.legacy.verdict(on: request) {
        case .refused(let answer, let reason):
            return self.refuse(request, id: id, answer: answer, reason: reason)
        case .accepted(let message, let format):
            let registrations = self.state.registrations
            return self.state.conclude(request, id: id) { subscriptions, groups in
                LegacySettlement(
                    message,
                    format: format,
                    subscriptions: subscriptions,
                    groups: groups,
                    registrations: registrations,
                    now: request.time
                )
                .settlement(of: message)
            }
        }
    }

    private func handleGroups(_ request: ReceivedRequest, id: Int?) -> Answer {
        let endpoint = GroupEndpoint(legacy: self.legacy) { self.state.access(with: $0, now: self.now()) }
        switch endpoint.verdict(on: request) {
        case .refused(let answer, let reason): return self.refuse(request, id: id, answer: answer, reason: reason)
        case .accepted(let command): return self.state.conclude(request, id: id, command)
        }
    }

    private func handleV1(_ request: ReceivedRequest, id: Int?, project: String) -> Answer {
        let endpoint = V1Endpoint(
            project: project,
            access: { self.state.access(with: $0, now: self.now()) },
            isKnown: { self.state.knows(project: $0) }
        )
        switch endpoint.verdict(on: request) {
        case .refused(let answer, let reason):
            return self.refuse(request, id: id, answer: answer, reason: reason)
        case .accepted(let message):
            let registrations = self.state.registrations
            return self.state.conclude(request, id: id) { subscriptions, groups in
                V1Settlement.settle(
                    message,
                    subscriptions: subscriptions,
                    groups: groups,
                    registrations: registrations,
                    now: request.time
                )
            }
        }
    }

    private func handleToken(_ request: ReceivedRequest, id: Int?) async -> Answer {
        guard request.method == "POST" else {
            let reason = "the method is \(request.method)"
            return self.refuse(request, id: id, answer: .methodNotAllowed(allow: "POST"), reason: reason)
        }
        let state = self.state
        let endpoint = TokenEndpoint { state.account(email: $0) }
        do throws(TokenRefusal) {
            let now = self.now()
            let grant = try await endpoint.grant(for: request, now: now)
            let (token, seconds) = state.issueToken(for: grant, now: now)
            let answer = Answer.json(
                #"{"access_token":\#(JSONValue.quoted(token)),"expires_in":\#(seconds),"token_type":"Bearer"}"#
            )
            state.conclude(request, id: id, decision: JournalDecision(answer: answer))
            return answer
        } catch {
            return self.refuse(request, id: id, answer: error.answer, reason: "\(error.code): \(error.description)")
        }
    }

    func refuse(_ request: ReceivedRequest, id: Int?, answer: Answer, reason: String) -> Answer {
        self.state.conclude(request, id: id, decision: JournalDecision(answer: answer, reason: reason))
        return answer
    }
}

// MARK: Faults

extension EmulatorResponder {
    private func play(
        _ action: FaultAction,
        _ request: ReceivedRequest,
        id: Int,
        origin: RequestOrigin
    ) async -> Response {
        switch action {
        case .status(let status, let body, let headers):
            let answer = Answer(
                status: status,
                contentType: "text/plain; charset=UTF-8",
                body: body ?? "",
                headers: headers
            )
            return Response(self.refuse(request, id: id, answer: answer, reason: "scripted status"))
        case .garbage:
            return Response(self.refuse(request, id: id, answer: .garbage, reason: "scripted garbage"))
        case .truncate:
            return .truncated(await self.handle(request, id: id))
        case .goAway(isRefused: false):
            let answer = await self.handle(request, id: id)
            await origin.goAway(refusing: false)
            return Response(answer)
        case .goAway(isRefused: true):
            self.drop(request, id: id, reason: "refused by GOAWAY")
            await origin.goAway(refusing: true)
        case .refuse:
            self.drop(request, id: id, reason: "stream refused")
            await origin.refuse()
        case .reset, .delay, .hang:
            self.drop(request, id: id, reason: "connection reset")
            await origin.reset()
        }
        // Nobody reads this: the stream or the connection is gone.
        return Response(status: .noContent)
    }

    private func drop(_ request: ReceivedRequest, id: Int, reason: String) {
        self.state.conclude(request, id: id, decision: JournalDecision(answer: nil, reason: reason))
    }

    /// Waits until the request is released, then handles it; unless the client has gone by then.
    private func hang(_ request: ReceivedRequest, id: Int, until hold: Hold, watch: PeerWatch) async -> Response {
        let state = self.state
        watch.onDeparture { state.release(hold.id) }
        for await _ in hold.end {}
        guard !watch.isGone else {
            self.drop(request, id: id, reason: "the client went away")
            if watch.origin.stream == nil { await watch.origin.reset() }
            return Response(status: .noContent)
        }
        return Response(await self.handle(request, id: id))
    }
}
