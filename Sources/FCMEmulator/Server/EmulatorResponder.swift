import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// The reason why a request is refused, in its protocol's words and for the journal.
protocol RequestRefusal: Error {
    var answer: Answer { get }
    var reason: String { get }
}

/// A refusal before a protocol's own checks.
struct Refused: RequestRefusal, Equatable {
    let answer: Answer
    let reason: String
}

/// Passes a request's channel from Hummingbird to its handler, for faults on the wire.
struct EmulatorContext: InitializableFromSource {
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        self.channel = source.channel
    }
}

/// Answers the requests: control routes, scripted faults, then the protocols.
struct EmulatorResponder: HTTPResponder {
    let emulator: FCMEmulator
    let legacy: LegacyEndpoint
    let maxBodyBytes: Int
    /// The scheme of the URLs in answers.
    let scheme: String
    let clock: any Clock<Duration>
    let now: @Sendable () -> Date

    func respond(to request: Request, context: EmulatorContext) async throws -> Response {
        let response = try await self.answer(to: request, context: context)
        // An answer to HEAD has no body (RFC 9110, 9.3.2); clients treat a stream with one as broken.
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func answer(to request: Request, context: EmulatorContext) async throws -> Response {
        let watch = try await context.channel.pipeline.handler(type: PeerWatch.self).get()
        guard let bytes = try await self.body(of: request) else {
            return self.tooLarge(request, origin: watch.origin)
        }
        let received = ReceivedRequest(origin: watch.origin, time: self.now(), head: request.head, bodyBytes: bytes)
        if received.path.hasPrefix(ControlRoutes.prefix) {
            return Response(ControlRoutes(emulator: self.emulator, scheme: self.scheme).answer(to: received))
        }
        let response = await self.respond(to: received, watch: watch)
        if let (latency, hold) = self.emulator.holdAnswer() {
            await self.clock.pause(for: latency, unless: hold.end)
            self.emulator.release(hold)
        }
        return response
    }

    private func respond(to request: ReceivedRequest, watch: PeerWatch) async -> Response {
        switch self.emulator.admit(request) {
        case .handle:
            return Response(await self.handle(request, id: nil))
        case .fault(let action, let id):
            return await self.play(action, request, id: id, origin: watch.origin)
        case .hold(.delay(let pause), let id, let hold):
            await self.clock.pause(for: pause, unless: hold.end)
            self.emulator.release(hold)
            return Response(await self.handle(request, id: id))
        case .hold(_, let id, let hold):
            return await self.hang(request, id: id, until: hold, watch: watch)
        }
    }

    /// Returns the body's bytes; `nil` if there are too many.
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
        return Response(self.refuse(received, id: nil, Refused(answer: answer, reason: reason)))
    }

    // MARK: Protocols

    /// Handles a request by its path and records the answer.
    private func handle(_ request: ReceivedRequest, id: Int?) async -> Answer {
        do {
            return try await self.answer(to: request, id: id)
        } catch let refusal as any RequestRefusal {
            return self.refuse(request, id: id, refusal)
        } catch {
            let answer = Answer.page("Internal Server Error", status: 500)
            return self.refuse(request, id: id, Refused(answer: answer, reason: "\(error)"))
        }
    }

    private func answer(to request: ReceivedRequest, id: Int?) async throws -> Answer {
        if let project = V1Endpoint.project(in: request.path) {
            let message = try self.v1(project).message(in: request)
            return self.emulator.deliver(request, id: id) { subscriptions, groups, registrations in
                .v1(
                    message,
                    project: project,
                    subscriptions: subscriptions,
                    groups: groups,
                    registrations: registrations,
                    now: request.time
                )
            }
        }
        if let path = TopicRequestPath(request.path) {
            return try self.answerTopics(request, id: id, path: path)
        }
        switch request.path {
        case LegacyEndpoint.path:
            let (message, format) = try self.legacy.message(in: request)
            return self.emulator.deliver(request, id: id) { subscriptions, groups, registrations in
                .legacy(
                    message,
                    format: format,
                    subscriptions: subscriptions,
                    groups: groups,
                    registrations: registrations,
                    now: request.time
                )
            }
        case GroupEndpoint.path:
            let endpoint = GroupEndpoint(legacy: self.legacy, access: self.emulator.access(with:))
            let key = try self.emulator.perform(try endpoint.command(in: request))
            return self.record(request, id: id, .json(#"{"notification_key":"# + JSONValue.quoted(key) + "}"))
        case TokenEndpoint.path:
            guard request.method == "POST" else {
                throw Refused(answer: .methodNotAllowed(allow: "POST"), reason: "the method is \(request.method)")
            }
            let now = self.now()
            let emulator = self.emulator
            let grant = try await TokenEndpoint { emulator.account(email: $0) }.grant(for: request, now: now)
            let (token, seconds) = emulator.issueToken(for: grant, now: now)
            let text = #"{"access_token":\#(JSONValue.quoted(token)),"expires_in":\#(seconds),"token_type":"Bearer"}"#
            return self.record(request, id: id, .json(text))
        default:
            let federation = Federation(emulator: self.emulator, now: self.now())
            guard let answer = try federation.answer(to: request) else {
                throw Refused(answer: .notFound, reason: "nothing is served at this path")
            }
            return self.record(request, id: id, answer)
        }
    }

    private func answerTopics(_ request: ReceivedRequest, id: Int?, path: TopicRequestPath) throws -> Answer {
        switch path {
        case .batch, .info, .relation:
            let endpoint = InstanceIDEndpoint(legacy: self.legacy, access: self.emulator.access(with:))
            let call = try endpoint.call(request, at: path)
            return self.emulator.withSubscriptions(request, id: id) { call.run(on: &$0, now: request.time) }
        case .subscriptions(let project, let token, let topic):
            let endpoint = V1TopicEndpoint(v1: self.v1(project), token: token, topic: topic)
            let call = try endpoint.call(request)
            return self.emulator.withSubscriptions(request, id: id) {
                endpoint.run(call, on: &$0, now: request.time)
            }
        }
    }

    private func v1(_ project: String) -> V1Endpoint {
        V1Endpoint(project: project, access: self.emulator.access(with:), isKnown: self.emulator.knows(project:))
    }

    private func record(_ request: ReceivedRequest, id: Int?, _ answer: Answer) -> Answer {
        self.emulator.record(request, id: id, decision: JournalDecision(answer: answer))
        return answer
    }

    private func refuse(_ request: ReceivedRequest, id: Int?, _ refusal: any RequestRefusal) -> Answer {
        let decision = JournalDecision(answer: refusal.answer, reason: refusal.reason)
        self.emulator.record(request, id: id, decision: decision)
        return refusal.answer
    }

    // MARK: Faults

    private func play(
        _ action: FaultAction,
        _ request: ReceivedRequest,
        id: Int,
        origin: RequestOrigin
    ) async -> Response {
        switch action {
        case .status(let status, let body, let headers):
            let type = "text/plain; charset=UTF-8"
            let answer = Answer(status: status, contentType: type, body: body ?? "", headers: headers)
            return Response(self.refuse(request, id: id, Refused(answer: answer, reason: "scripted status")))
        case .garbage:
            return Response(self.refuse(request, id: id, Refused(answer: .garbage, reason: "scripted garbage")))
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
        // Never read: the stream or the connection is gone.
        return Response(status: .noContent)
    }

    private func drop(_ request: ReceivedRequest, id: Int, reason: String) {
        self.emulator.record(request, id: id, decision: JournalDecision(answer: nil, reason: reason))
    }

    /// Waits until the request is released, then handles it unless the client has gone.
    private func hang(
        _ request: ReceivedRequest,
        id: Int,
        until hold: FCMEmulator.Hold,
        watch: PeerWatch
    ) async -> Response {
        let emulator = self.emulator
        watch.onDeparture { emulator.release(hold) }
        for await _ in hold.end {}
        guard !watch.isGone else {
            self.drop(request, id: id, reason: "the client went away")
            if watch.origin.stream == nil { await watch.origin.reset() }
            return Response(status: .noContent)
        }
        return Response(await self.handle(request, id: id))
    }
}
