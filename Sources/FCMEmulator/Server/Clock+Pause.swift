extension Clock where Duration == Swift.Duration {
    /// Waits until the time is over or the hold ends.
    ///
    /// - Returns: whether the time was over first.
    @discardableResult
    func pause(for duration: Duration, unless end: AsyncStream<Void>) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                do {
                    try await self.sleep(for: duration)
                    return true
                } catch {
                    return false
                }
            }
            group.addTask {
                for await _ in end {}
                return false
            }
            let isOver = await group.next() ?? false
            group.cancelAll()
            return isOver
        }
    }
}
