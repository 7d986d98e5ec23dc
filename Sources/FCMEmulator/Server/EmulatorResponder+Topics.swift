/// Requests about subscriptions.
extension EmulatorResponder {
    /// Handles a request by one of the paths for subscriptions.
    func handleTopics(_ request: ReceivedRequest, id: Int?, path: TopicRequestPath) -> Answer {
        switch path {
        case .batch, .info, .relation:
            return self.handleInstanceID(request, id: id, path: path)
        case .subscriptions(let project, let token, let topic):
            let v1 = V1Endpoint(
                project: project,
                access: { self.state.access(with: $0, now: self.now()) },
                isKnown: { self.state.knows(project: $0) }
            )
            let endpoint = V1TopicEndpoint(v1: v1, token: token, topic: topic)
            do throws(V1Failure) {
                let call = try endpoint.call(request)
                return self.state.keepSubscriptions(request, id: id) {
                    endpoint.run(call, on: &$0, now: request.time)
                }
            } catch {
                return self.refuse(request, id: id, answer: error.answer, reason: error.reason)
            }
        }
    }

    private func handleInstanceID(_ request: ReceivedRequest, id: Int?, path: TopicRequestPath) -> Answer {
        let endpoint = InstanceIDEndpoint(legacy: self.legacy) { self.state.access(with: $0, now: self.now()) }
        do throws(InstanceIDError) {
            let call = try endpoint.call(request, at: path)
            return self.state.keepSubscriptions(request, id: id) { call.run(on: &$0, now: request.time) }
        } catch {
            return self.refuse(request, id: id, answer: error.answer, reason: error.text)
        }
    }
}
