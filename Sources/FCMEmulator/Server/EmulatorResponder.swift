import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// Answers the requests: control routes, scripted faults, then the protocol.
struct EmulatorResponder: HTTPResponder {
    let state: EmulatorState
    let legacy: LegacyEndpoint
    let maxBodyBytes: Int
    /// Measures the pauses of `delay`.
    let clock: any Clock<Duration>

    func respond(to request: Request, context: EmulatorContext) async throws -> Response {
        guard let bytes = try await self.body(of: request) else {
            return self.tooLarge(request)
        }
        let received = ReceivedRequest(time: Date(), head: request.head, bodyBytes: bytes)
        if received.path.hasPrefix(ControlRoutes.prefix) {
            return Response(ControlRoutes(state: self.state).answer(to: received))
        }
        switch self.state.admit(received) {
        case .handle:
            return Response(self.handle(received, id: nil))
        case .fault(let action, let id):
            return await self.play(action, received, id: id, channel: context.channel)
        case .hold(.delay(let pause), let id, let release):
            await self.wait(pause, orUntil: release)
            self.state.release(id)
            return Response(self.handle(received, id: id))
        case .hold(_, let id, let release):
            return try await self.hang(received, id: id, until: release, channel: context.channel)
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

    private func tooLarge(_ request: Request) -> Response {
        let received = ReceivedRequest(time: Date(), head: request.head, bodyBytes: [])
        let answer = Answer.page("Request Entity Too Large", status: 413)
        let reason = "the body has more than \(self.maxBodyBytes) bytes"
        self.state.conclude(received, id: nil, decision: JournalDecision(answer: answer, reason: reason))
        return Response(answer)
    }

    /// Handles a request by its path.
    private func handle(_ request: ReceivedRequest, id: Int?) -> Answer {
        guard request.path == LegacyEndpoint.path else {
            let decision = JournalDecision(answer: .notFound, reason: "nothing is served at this path")
            self.state.conclude(request, id: id, decision: decision)
            return .notFound
        }
        switch self.legacy.verdict(on: request) {
        case .refused(let answer, let reason):
            self.state.conclude(request, id: id, decision: JournalDecision(answer: answer, reason: reason))
            return answer
        case .accepted(let message, let format):
            return self.state.conclude(request, id: id, message: message, format: format)
        }
    }
}

// MARK: Faults

extension EmulatorResponder {
    private func play(_ action: FaultAction, _ request: ReceivedRequest, id: Int, channel: any Channel) async
        -> Response
    {
        switch action {
        case .status(let status, let body, let headers):
            let answer = Answer(
                status: status,
                contentType: "text/plain; charset=UTF-8",
                body: body ?? "",
                headers: headers
            )
            return self.conclude(request, id: id, answer: answer, reason: "scripted status")
        case .garbage:
            return self.conclude(request, id: id, answer: .garbage, reason: "scripted garbage")
        case .truncate:
            return .truncated(self.handle(request, id: id))
        case .reset, .delay, .hang:
            self.state.conclude(request, id: id, decision: JournalDecision(answer: nil, reason: "connection reset"))
            await channel.resetConnection()
            return Response(status: .noContent)
        }
    }

    private func conclude(_ request: ReceivedRequest, id: Int, answer: Answer, reason: String) -> Response {
        self.state.conclude(request, id: id, decision: JournalDecision(answer: answer, reason: reason))
        return Response(answer)
    }

    private func wait(_ pause: Duration, orUntil release: AsyncStream<Void>) async {
        let clock = self.clock
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await clock.sleep(for: pause) }
            group.addTask { for await _ in release {} }
            await group.next()
            group.cancelAll()
        }
    }

    /// Waits until the request is released, then handles it; unless the client has gone by then.
    private func hang(
        _ request: ReceivedRequest,
        id: Int,
        until release: AsyncStream<Void>,
        channel: any Channel
    ) async throws -> Response {
        let state = self.state
        let watch = try await channel.pipeline.handler(type: PeerWatch.self).get()
        watch.onDeparture { state.release(id) }
        for await _ in release {}
        guard !watch.isGone else {
            state.conclude(request, id: id, decision: JournalDecision(answer: nil, reason: "the client went away"))
            await channel.resetConnection()
            return Response(status: .noContent)
        }
        return Response(self.handle(request, id: id))
    }
}
