int policy_answer(void) { return 42; }
